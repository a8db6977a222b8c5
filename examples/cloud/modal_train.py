"""Not run. A function of Modal: modal run examples/cloud/modal_train.py"""

import shlex
import subprocess

import modal

COMMANDS = [
    "trainer self-check",
    "trainer data gsm8k --output data/gsm8k",
    "trainer --config gsm8k/grpo.yaml trainer.device=cuda trainer.default_local_dir=/checkpoints/gsm8k",
]

app = modal.App("burnish-gsm8k")
image = modal.Image.debian_slim(python_version="3.12").pip_install("burnish[cuda]")
volume = modal.Volume.from_name("burnish-checkpoints", create_if_missing=True)


@app.function(image=image, gpu="H100", volumes={"/checkpoints": volume}, timeout=24 * 60 * 60)
def train():
    """Trains, and keeps the checkpoints also if the training fails."""
    try:
        for command in COMMANDS:
            subprocess.run(shlex.split(command), check=True)
    finally:
        volume.commit()


@app.local_entrypoint()
def main():
    train.remote()
