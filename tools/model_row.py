"""Write the stanza of a model for scalebook/tables/models.toml from its config.json.

    python tools/model_row.py kimi_k3 "Kimi K3" moonshotai/Kimi-K3 path/to/config.json

The last argument is a file, or the name of a configuration in tests/configurations.jsonl.gz. Parameters are those of
the shape: put the published number and its source in their place, with the shape's in the note.
"""

import gzip
import json
import sys
from pathlib import Path

from scalebook.tables import models

KEPT = Path(__file__).parent.parent / "tests/configurations.jsonl.gz"
WORDS = ("attention", "norm", "windows", "family", "blocks")
COMPUTED = ("params", "active_params", "kv_width", "attention_width", "linear_state")
COUNTED = (*COMPUTED, "window_layers")  # where blocks differ


def stanza(key: str, name: str, repository: str, config) -> str:
    """Return the text of a stanza: the letters that the configuration states, and the parameters of the shape."""
    row = models.read(config, name=name)
    lines = [f"[{key}]", f'name = "{name}"', f'source = "huggingface-configs {repository}"']
    lines += [f'{word} = "{row.words[word]}"' for word in WORDS if word in row.words]
    computed = COUNTED if "blocks" in row.words else COMPUTED
    stated = (x for x, cell in row.cells.items() if cell.formula is None and x not in computed and not cell.note)
    lines += [f"{x} = {int(row[x])}" for x in stated]
    for letter in COMPUTED[:2]:
        lines.append(f'{letter} = {{value = {row[letter]:#.5g}, note = "derived from the shape"}}')
    return "\n".join(lines)


def main(key: str, name: str, repository: str, config: str) -> None:
    if not Path(config).exists():
        with gzip.open(KEPT, "rt", encoding="utf-8") as lines:
            config = next(x["config"] for x in map(json.loads, lines) if x["name"] == config)
    print(stanza(key, name, repository, config))


if __name__ == "__main__":
    main(*sys.argv[1:])
