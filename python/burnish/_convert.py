"""Scripts and commands of verl, TRL and OpenRLHF as recipes."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional

from ._errors import TrainerError
from ._program import PathLike, call

# Any Python program may be one of TRL's, so TRL is last.
PEERS = {"verl": "from-verl", "openrlhf": "from-openrlhf", "trl": "from-trl"}


@dataclass
class Conversion:
    """A command of another library as a recipe, with everything that differs."""

    library: str
    edition: str
    """Release of the library whose defaults count."""
    subcommand: str
    """Command that trains it, for ``burnish.train(command=…)``; empty for reinforcement learning."""
    recipe: str
    not_supported: List[str] = field(default_factory=list)
    """Parts of the command that burnish does not have, with the reason; the recipe is without them."""
    differences: List[str] = field(default_factory=list)
    ignored: List[str] = field(default_factory=list)
    """Settings without an effect here, with the reason."""
    missing: List[str] = field(default_factory=list)
    """Values that you must set."""
    notes: List[str] = field(default_factory=list)
    error: Optional[str] = None
    """Error with which a run of the recipe would end at once."""

    def write(self, path: PathLike) -> Path:
        """Writes the recipe to a file, for ``burnish.train(path)``."""
        Path(path).write_text(self.recipe, encoding="utf-8")
        return Path(path)


def convert(script: PathLike, peer: Optional[str] = None, variables: Optional[Dict[str, str]] = None) -> Conversion:
    """Converts a script, a program or a command in quotes.

    ``script``: the path of a file, or the text of a command or of a shell script. ``peer``: ``verl``, ``trl`` or
    ``openrlhf``; by default the library whose name is in the text. ``variables``: those that a script takes from the
    environment.

    Raises ``TrainerError`` if the library would refuse the command.
    """
    if peer is not None and peer.lower() not in PEERS:
        raise ValueError(f"peer={peer!r} is not a library whose commands are converted: write {', '.join(PEERS)}")
    text = os.fspath(script)
    is_file = "\n" not in text and os.path.isfile(text)
    content = Path(text).read_text(encoding="utf-8", errors="replace") if is_file else text
    given = [f"{name}={value}" for name, value in (variables or {}).items()]
    peers = [peer.lower()] if peer else _named_in(content)
    if is_file:
        return _first(peers, f"@{text}", given)
    if re.search(r"^\s*(import|from)\s+(trl|openrlhf)\b", content, re.MULTILINE):
        with tempfile.TemporaryDirectory(prefix="burnish-") as folder:
            program = Path(folder) / "program.py"
            program.write_text(content, encoding="utf-8")
            return _first(peers, f"@{program}", given)
    return _first(peers, text, given)


def _named_in(content: str) -> List[str]:
    """Returns the libraries that a text names; all if it names none."""
    named = [peer for peer in PEERS if re.search(rf"(?<![A-Za-z0-9]){peer}(?![A-Za-z0-9])", content)]
    return named or list(PEERS)


def _first(peers: List[str], command: str, variables: List[str]) -> Conversion:
    """Returns the conversion by the first library that takes the command."""
    refusals = []
    for peer in peers:
        try:
            printed = call([PEERS[peer], command, *variables, "--json"], also=(1,))
            return Conversion(**json.loads(printed))
        except TrainerError as error:
            refusals.append(error)
    if len(refusals) == 1:
        raise refusals[0]
    lines = [f"{peer}: {error.message}" for peer, error in zip(peers, refusals)]
    raise TrainerError("no library takes the command:\n" + "\n".join(lines), refusals[-1].code)
