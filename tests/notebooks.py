"""The notebooks of examples/notebooks: how they are run, and what of them is compared.

    .venv/bin/python tests/notebooks.py FOLDER table pandas   # writes their outputs again

FOLDER is the one that holds the package `quern`. A cell with the tag `varies` prints times or draws
a picture, so its output is nobody's to compare. Outputs are kept as text only.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "notebooks"


@contextlib.contextmanager
def kernel(package, scratch, **more):
    """A manager of kernels and the environment for one, which finds the package. Sockets in a folder,
    whose path has to be short, are nobody else's, and the ports of loopback may be."""
    from jupyter_client import AsyncKernelManager

    paths = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory(prefix="quern-") as runtime:
        manager = AsyncKernelManager(kernel_name="python3", transport="ipc",
                                     connection_file=f"{runtime}/kernel.json")
        yield manager, {**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": f"{scratch}/ipython",
                        "JUPYTER_RUNTIME_DIR": runtime, **more}


def read(name):
    import nbformat

    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def run(notebook, package, scratch, **more):
    """Runs the cells, whose outputs it replaces. A cell that raises ends it with its exception."""
    from nbclient import NotebookClient

    with kernel(package, scratch, **more) as (manager, environment):
        client = NotebookClient(notebook, timeout=300, km=manager,
                                resources={"metadata": {"path": str(scratch)}})
        client.execute(env=environment, cleanup_kc=True)


def text_of(output):
    text = output.get("text", output.get("data", {}).get("text/plain", ""))
    return "".join(text)


def printed(notebook):
    """[(id, text)] of the cells whose output is the same on every machine."""
    return [(cell.id, "".join(map(text_of, cell.outputs))) for cell in notebook.cells
            if cell.cell_type == "code" and "varies" not in cell.metadata.get("tags", [])]


def as_kept(notebook):
    """Only text, and nothing of the run: neither its times nor the version of its Python."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.metadata = {} if "metadata" in output else output.get("metadata")
            if "data" in output:
                output["data"] = {"text/plain": output["data"].get("text/plain", "")}
            if output["output_type"] == "stream":
                output.pop("metadata", None)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def main(package, *names):
    import nbformat

    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            notebook = read(name)
            run(notebook, Path(package).resolve(), scratch)
        text = nbformat.writes(as_kept(notebook), version=4)
        (FOLDER / f"{name}.ipynb").write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
