"""What augmentation costs: processor time of an epoch of CIFAR-10's test images, with and without.

    python bench/augment.py --threads 2 --rounds 10

The network is one dense layer, so that the rest of a step is small beside the augmentation. The
contenders take turns; told is processor time an image and epoch, which a loaded machine changes less
than the time on the clock. QUERN_CIFAR10 names the folder of test.tar.
"""

import os
import pathlib
import resource
import statistics
import tempfile

import common

EPOCHS, IMAGES = 10, 10000
WORDS = ["", "resizedcrop", "rotate 15 bilinear", "blur 5",
         "jitter brightness 0.4 contrast 0.4 saturation 0.4 hue 0.1", "flip", "pad 4; crop", "cutout 8", "pad 4; crop; flip; cutout 8"]


def trained(data, words, threads, model):
    """Microseconds of processor time for each image and epoch."""
    command = [common.quern_path(), "train", "--data", data, "--model", "dense 10 softmax", "--lr", "0.001",
               "--epochs", EPOCHS, "--batch", 128, "--threads", threads, "--quiet", "-o", model]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    common.call([*command, *(["--augment", words] if words else [])], threads)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e6 * spent / EPOCHS / IMAGES


def main():
    chosen = common.options(__doc__.splitlines()[0], threads=[2], rounds=10).parse_args()
    folder = os.environ.get("QUERN_CIFAR10", common.ROOT.parent / "shared/data/cifar10")
    data = pathlib.Path(folder) / "test.tar"
    if not common.quern_version() or not data.exists():
        print(f"SKIPPED: no {common.quern_path()} or no {data}")
        return
    facts = {**common.hardware(), "quern": common.quern_version(), "data": f"{IMAGES} images of 3x32x32"}
    rows = {}
    with tempfile.TemporaryDirectory() as scratch:
        for threads in chosen.threads:
            taken, made = {words: [] for words in WORDS}, {}
            for _ in range(chosen.rounds):
                for words in WORDS:
                    model = pathlib.Path(scratch) / "m.safetensors"
                    taken[words].append(trained(data, words, threads, model))
                    if made.setdefault(words, model.read_bytes()) != model.read_bytes():
                        raise common.Failed(f"another model with --augment {words!r}")
            if len(set(made.values())) != len(WORDS):
                raise common.Failed("two augmentations made the same model")
            for words, turns in taken.items():
                rows[f"{threads} threads, {words or 'none'}"] = {
                    "median": statistics.median(turns), "least": min(turns), "chunks": turns}
    lines = [[name, f"{row['median']:.2f}", f"{row['least']:.2f}"] for name, row in rows.items()]
    text = common.table(["augmentation", "median us an image", "least"], lines)
    common.publish("Augmentation", facts, [("Processor time", text, rows)], chosen)


if __name__ == "__main__":
    main()
