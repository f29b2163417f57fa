"""The notebooks of examples/ run and print what stands in them; the package inside a kernel."""

import asyncio

import pytest

import machine
import notebooks
import python_package

pytest.importorskip("nbclient", reason="no nbclient here; scripts/setup.sh says how to get it")
pytest.importorskip("ipykernel", reason="no ipykernel here; scripts/setup.sh says how to get it")

# MNIST's notebook is told to be small, so it prints other digests than those of all items.
SMALL = {"mnist": {"QUERN_NOTEBOOK_ITEMS": "256"}}


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Where a notebook runs."""
    monkeypatch.delenv("QUERN_MNIST", raising=False)
    return tmp_path


def test_all_notebooks_are_tried():
    assert {f.stem for f in notebooks.FOLDER.glob("*.ipynb")} == {"table", "mnist", "pandas"}


@pytest.mark.parametrize("name, needs", [("table", []), pytest.param("mnist", ["sklearn"], marks=machine.LONG),
                                         ("pandas", ["pandas", "sklearn"])])
def test_notebooks(scratch, name, needs):
    """What stands in the notebook is what it prints, on every machine."""
    for module in needs:
        pytest.importorskip(module)
    kept = notebooks.read(name)
    assert any(text for _, text in notebooks.printed(kept))
    again = notebooks.read(name)
    notebooks.run(again, python_package.folder(), scratch, **SMALL.get(name, {}))
    assert notebooks.printed(again) == notebooks.printed(kept)


def notebook_of(*sources):
    import nbformat.v4 as v4

    return v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])


def test_progress_is_one_output_that_changes(scratch):
    """Neither a line for each epoch nor one for each step stays in the notebook."""
    book = notebook_of("import quern\n"
                       "quern.train(quern.digits(300), model='dense 9 tanh; dense 10 softmax', "
                       "epochs=40, threads=1, devices='cpu', valid=0.2).digest[:0]")
    notebooks.run(book, python_package.folder(), scratch)
    shown = [o for o in book.cells[0].outputs if o.output_type != "execute_result"]
    assert [o.output_type for o in shown] == ["display_data"]
    text = shown[0].data["text/plain"]
    assert text.startswith("[====") and "100 %  epoch 40/40  loss " in text and "valid" in text
    assert len([line for line in text.splitlines() if not line.startswith("note: ")]) == 1


TRAIN = ("quern.train(quern.digits(300), model='dense 9 tanh; dense 10 softmax', epochs={}, "
         "threads=1, devices='cpu')")


def test_the_interrupt_of_a_notebook_ends_the_training(scratch):
    """The kernel is told as its user's Stop tells it; what comes next works."""
    asyncio.run(interrupted(scratch))


async def reply_to(client, message):
    """The kernel may still answer to what was asked while it started."""
    while True:
        reply = await client.get_shell_msg(timeout=60)
        if reply["parent_header"].get("msg_id") == message:
            return reply["content"]


async def interrupted(scratch):
    with notebooks.kernel(python_package.folder(), scratch) as (manager, environment):
        await manager.start_kernel(env=environment, cwd=str(scratch))
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=60)
            # Otherwise a kernel answers "aborted" to what comes soon after an error.
            training = client.execute("import quern; " + TRAIN.format(4_000_000_000), stop_on_error=False)
            while (await client.get_iopub_msg(timeout=60))["msg_type"] != "display_data":
                pass
            await manager.interrupt_kernel()
            reply = await reply_to(client, training)
            assert (reply["status"], reply.get("ename")) == ("error", "KeyboardInterrupt")
            after = client.execute(f"same = {TRAIN.format(2)}.digest == {TRAIN.format(2)}.digest",
                                   user_expressions={"same": "same"})
            reply = await reply_to(client, after)
            assert reply["user_expressions"]["same"]["data"]["text/plain"] == "True"
        finally:
            client.stop_channels()
            await manager.shutdown_kernel(now=True)
