"""Open the book in JupyterLab, which marks no notebook unsaved that has only been opened.

When a kernel answers, JupyterLab writes the kernel's `language_info`, the version of Python within, into the notebook,
and marks it unsaved where that is something new.  The book's are stored for every Python and name none.  So they are
read here as a kernel of this Python would make them; what is written is what JupyterLab writes.
"""

import sys

from ipykernel.ipkernel import IPythonKernel
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyterlab.labapp import LabApp


class Contents(AsyncLargeFileManager):
    """Files of a folder, whose notebooks of Python say of which Python their kernel will be."""

    async def get(self, *args, **settings):
        model = await super().get(*args, **settings)
        if model["type"] == "notebook" and model["content"]:
            metadata = model["content"]["metadata"]
            if metadata.get("kernelspec", {}).get("name") == "python3":
                metadata["language_info"] = IPythonKernel.language_info
        return model


if __name__ == "__main__":
    LabApp.launch_instance(["--ServerApp.contents_manager_class=tools.lab.Contents", *sys.argv[1:]])
