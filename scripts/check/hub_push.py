"""Reads a repository of models by Hugging Face's own client and compares it with a folder.

    pip install huggingface_hub       (and transformers, safetensors and numpy, to load what was read)
    python scripts/check/hub_push.py ENDPOINT REPO REVISION FOLDER

`cargo test --test binary hub_push` calls it on its own server, if the Python of BURNISH_HUB_PYTHON (or python3) has the package.
It works on the Hub as well, with HF_TOKEN for private repositories.
"""

import json
import pathlib
import sys
import tempfile

endpoint, repo, revision, folder = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])

import huggingface_hub
from huggingface_hub import HfApi, ModelCard, snapshot_download

api = HfApi(endpoint=endpoint)
info = api.model_info(repo, revision=revision)
names = sorted(sibling.rfilename for sibling in info.siblings)
print(f"huggingface_hub {huggingface_hub.__version__}: {info.id} private={info.private} sha={info.sha[:12]}")
own = sorted(path.name for path in folder.iterdir())
assert [name for name in names if name != ".gitattributes"] == own, (names, own)

with tempfile.TemporaryDirectory() as cache:
    there = pathlib.Path(snapshot_download(repo, revision=revision, endpoint=endpoint, cache_dir=cache))
    for name in own:
        assert (there / name).read_bytes() == (folder / name).read_bytes(), name
        print(f"  {name}: {(folder / name).stat().st_size} bytes, the same")
    card = ModelCard.load(there / "README.md")
    data = card.data.to_dict()
    print("  card:", json.dumps(data))
    assert data["library_name"] in ("transformers", "peft") and "burnish" in data["tags"] and card.text.strip()
    try:
        import safetensors.numpy
        import transformers
    except ImportError as missing:
        print(f"  not loaded: {missing}")
    else:
        config = transformers.AutoConfig.from_pretrained(there)
        tokenizer = transformers.AutoTokenizer.from_pretrained(there)
        tensors = [tensor for file in there.glob("*.safetensors") for tensor in safetensors.numpy.load_file(file).values()]
        count = sum(tensor.size for tensor in tensors)
        print(f"  transformers {transformers.__version__}: {config.model_type}, {len(tokenizer)} tokens, {count} parameters")
