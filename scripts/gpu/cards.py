"""The vendors' specifications of cards: the bandwidth of their memory, and their rate of dense matmuls."""
import re
import subprocess

from benchlib import report

# A part of its name in nvidia-smi and torch; the memory's bandwidth in TB/s; dense TFLOP/s in bfloat16 (float16 without bfloat16)
# with sums in float32, and in float32 without tensor cores. The first matching row counts.
CARDS = [
    ("H200", 4.8, 989, 67),
    ("H100 NVL", 3.9, 835, 60),
    ("H100 PCIe", 2.0, 756, 51),
    ("H100", 3.35, 989, 67),
    ("A100.*80GB", 2.0, 312, 19.5),
    ("A100", 1.555, 312, 19.5),
    ("4090", 1.008, 165, 82.6),
    ("T4", 0.32, 65, 8.1),
]
# Cards without instructions for bfloat16; a run on them is in float32.
WITHOUT_BFLOAT16 = r"\b(T4|V100|P100|RTX 20\d\d|GTX \d+)\b"


def dtype(args):
    """The default dtype of a run on the device."""
    half = args.kind in ("cuda", "rocm", "metal") and not re.search(WITHOUT_BFLOAT16, args.card or "")
    return "bfloat16" if half else "float32"


def name(args):
    """The card in use, from nvidia-smi or torch; nothing if neither knows one, or if the device is not theirs."""
    if args.kind not in ("cuda", "vulkan", "wgpu"):
        return None
    listed = report.output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    if listed:
        names = listed.splitlines()
        return names[args.index] if args.index < len(names) else names[0]
    code = f"import torch; print(torch.cuda.get_device_name({args.index}))"
    try:
        done = subprocess.run([args.python, "-c", code], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def of(args):
    """{"name", "bytes_per_s", "flop_per_s"} of the card in the dtype of the measurements, or nothing."""
    if args.card is None:
        return None
    for pattern, terabytes, half, single in CARDS:
        if re.search(rf"\b{pattern}\b", args.card):
            return {"name": args.card, "bytes_per_s": terabytes * 1e12,
                    "flop_per_s": (half if args.dtype == "bfloat16" else single) * 1e12}
    return None


def share(value, whole):
    """A fraction of the whole as text, or nothing if the whole is unknown."""
    return None if not whole else f"{value / whole:.1%}"
