"""Trains a network as docs/exactness.md says and writes the model file.

A second program beside `quern train`, written from the text alone: see README.md in this folder.
The modules follow the text: binary32 (1), data and columns (2), philox (3), order (4), scale (5),
network and products (6 to 8, 15), pixels (16), weights (7.7), optimise (9, 10), model_file (11, 12), elementary
(13).
"""

import argparse
import hashlib
from fractions import Fraction
from math import ceil

import numpy as np

import attention
import augment
import columns
import data
import lbfgs
import lora
import mix
import network
import products
import scale
import several
import stages
import texts
import validation
import weights as weighing
import wide
from binary32 import ONE, ZERO, fma, from_text, integer
from model_file import NAMES, from_file, model_bytes, tensors_in, tensors_of
from optimise import Optimiser, Schedule, Settings
from order import by_length, permutation, tokens_of_items
from philox import ORDER
from pixels import from_data


DECAYS = {"weights": ("weight",), "matrices": ("weight", "table"), "all": ("weight", "table", "bias")}  # 25.16

def number(text):
    """1.6: a number given as an option; adding +0 makes +0 of `-0` and nothing else of the rest."""
    return from_text(text) + ZERO


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    p.add_argument("--data", required=True)
    p.add_argument("--labels")
    p.add_argument("--tokens", choices=("ids",), default="")
    p.add_argument("--label", default="1")
    p.add_argument("--valid")
    p.add_argument("--valid-labels")
    p.add_argument("--drop", type=lambda text: text.split(","))
    p.add_argument("--dates", type=lambda text: text.split(","))
    p.add_argument("--date-format", default="")
    p.add_argument("--category", type=lambda text: text.split(","), default=[])
    p.add_argument("--text", type=lambda text: text.split(","))
    p.add_argument("--text-features")
    p.add_argument("--scale", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--shape", type=lambda text: tuple(map(int, text.split("x"))))
    p.add_argument("--augment", default="")
    p.add_argument("--mixup", type=number, default=ZERO)
    p.add_argument("--cutmix", type=number, default=ZERO)
    p.add_argument("--init", choices=("auto", "glorot", "he", "lecun"), default="auto")
    p.add_argument("--loss", choices=("mse", "mae", "huber", "binary", "cross-entropy"), required=True)
    p.add_argument("--delta", type=number, default=ONE)
    p.add_argument("--task", choices=("auto", "classify", "regress", "next"), default="auto")
    p.add_argument("--optimizer", choices=("sgd", "momentum", "adam", "adamw", "lbfgs"), default="sgd")
    p.add_argument("--momentum", type=number, default=ZERO)
    p.add_argument("--smoothing", type=number, default=ZERO)
    p.add_argument("--clip", type=number, default=ZERO)
    p.add_argument("--nesterov", action="store_true")
    p.add_argument("--beta1", type=number, default=from_text("0.9"))
    p.add_argument("--beta2", type=number, default=from_text("0.999"))
    p.add_argument("--epsilon", type=number, default=from_text("1e-8"))
    p.add_argument("--weight-decay", type=number, default=ZERO)
    p.add_argument("--l1", type=number, default=ZERO)
    p.add_argument("--no-intercept", action="store_true")
    p.add_argument("--tolerance", type=number, default=from_text("1e-4"))
    p.add_argument("--lr", type=number, default=ZERO)
    p.add_argument("--schedule", choices=("constant", "step", "cosine", "exponential"), default="constant")
    p.add_argument("--lr-step", type=int, default=0)
    p.add_argument("--lr-gamma", type=number, default=ZERO)
    p.add_argument("--lr-min", type=number, default=ZERO)
    p.add_argument("--decay-on", choices=DECAYS, default="weights")
    p.add_argument("--warmup", type=int, default=0)
    p.add_argument("--batch", type=int, default=0)
    p.add_argument("--epochs", type=int)
    p.add_argument("--stages", default="")
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--grain", type=int, required=True)
    p.add_argument("--unit", type=int)
    p.add_argument("--arith", choices=("f32", *products.BITS), default="f32")
    p.add_argument("--attention-arith", choices=("float32", "integers"), default="float32")
    p.add_argument("--missing", choices=("error", "mean", "median", "zero", "drop"), default="error")
    p.add_argument("--early-stopping", dest="patience", type=int, default=0)
    p.add_argument("--keep", choices=("last", "best"))
    p.add_argument("--init-from")
    p.add_argument("--freeze", default="")
    p.add_argument("--lora", default="")  # 25.86, as recipes have it
    p.add_argument("--group-lengths", type=int, default=0)  # 25.89
    p.add_argument("--new-last", type=int, nargs="?", const=2, default=0)  # 1: 24.60, 2: 24.83
    p.add_argument("--lr-depth", type=number, default=ZERO)
    p.add_argument("--ema", type=number, default=ZERO)
    p.add_argument("--init-scale", choices=("fit", "keep"), default="fit")
    p.add_argument("--weight")
    p.add_argument("--class-weight", default="")
    p.add_argument("-o", "--output", required=True)
    args = p.parse_args()
    if args.unit is None:
        args.unit = 32 if args.optimizer == "lbfgs" else 44
    if args.stages:
        args.lr = stages.parse(args.stages)[0]["lr"]
        args.epochs = sum(stage["epochs"] for stage in stages.parse(args.stages))
    args.keep = args.keep or ("best" if args.patience else "last")
    is_number = args.valid is None or args.valid.replace(".", "", 1).isdigit()
    args.valid_file = None if is_number else args.valid
    args.valid = number(args.valid) if is_number and args.valid else None
    args.scale_numbers = args.scale if "/" in args.scale else ""
    args.scale = "channel" if args.scale_numbers else args.scale
    return args


def settings_of(args):
    """9.7 and 11.1: settings in which those that the optimiser does not use are 0."""
    kind = args.optimizer
    if kind in ("sgd", "momentum"):
        kind = "sgd" if args.momentum == 0 else "momentum"
    adam = kind in ("adam", "adamw")
    return Settings(
        kind,
        args.momentum if kind == "momentum" else ZERO,
        args.beta1 if adam else ZERO,
        args.beta2 if adam else ZERO,
        args.epsilon if adam else ZERO,
        args.weight_decay,
        args.nesterov,
        args.clip,
        DECAYS[args.decay_on],
    )


def recipe_of(args, table, labels, names, layers, settings, own):
    """11.1, 11.5 and 11.8."""
    weights, column = own
    return {
        "arith": args.arith,
        "data": data.digest(table, labels, weights, names and names["exact"],
                            names and names["times"], names and names.texts),
        "items": table.shape[0],
        "features": table.shape[1],
        "valid": ZERO if args.valid is None else args.valid,
        "scale": args.scale,
        "scale_numbers": args.scale_numbers,
        "model": network.model_text(layers),
        "init": args.init,
        "loss": args.loss,
        "optimizer": settings.optimizer,
        "momentum": settings.momentum,
        "beta1": settings.beta1,
        "beta2": settings.beta2,
        "epsilon": settings.epsilon,
        "weight_decay": settings.decay,
        "lr": args.lr,
        "schedule": args.schedule,
        "lr_step": args.lr_step if args.schedule == "step" else 0,
        "lr_gamma": args.lr_gamma if args.schedule in ("step", "exponential") else ZERO,
        "warmup": args.warmup,
        "batch": args.batch,
        "grain": args.grain,
        "epochs": args.epochs,
        "seed": args.seed,
        "unit": args.unit,
        "missing": args.missing,
        "table": names,
        "task": several.task(labels) if several.is_several(labels) else
                "regress" if labels.dtype == np.float32 else "classify",
        "delta": args.delta if args.loss == "huber" else ZERO,
        "keep": args.keep,
        "patience": args.patience,
        "init_from": digest_of(args.init_from) if args.init_from else "",
        "weight": None if weights is None else column or "",
        "class_weight": args.class_weight,
        "init_scale": args.init_scale,
        "freeze": args.freeze,
        "lora": args.lora,
        "new_last": args.new_last,
        "tokens": args.tokens,
        "lr_depth": args.lr_depth,
        "decay_on": args.decay_on,
        "attention_arith": args.attention_arith,
        "lr_min": args.lr_min,
        "group_lengths": args.group_lengths,
        "mixup": args.mixup,
        "cutmix": args.cutmix,
        "ema": args.ema,
        "smoothing": args.smoothing,
        "clip": args.clip,
        "nesterov": int(args.nesterov),
        "augment": augment.canonical(args.augment),
        "l1": args.l1,
        "tolerance": args.tolerance if args.optimizer == "lbfgs" else ZERO,
        "no_intercept": int(args.no_intercept),
        "stages": stages.canonical(args.stages),
    }


def digest_of(path):
    """12.3."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def held_loss(args, layers, product, held, n):
    """7.4: the sum of the losses of the validation items; `n` training items."""
    passes = network.forward(layers, held[0], product=product)
    values = network.losses(args.loss, passes, held[1], args.delta)
    values = values if held[2] is None else values * held[2]
    return network.loss_units(values, min(args.grain, args.batch or n, n))


def train(args, layers, settings, fetch, targets, n, held, lengths):
    """Sections 4 and 6 to 10: trains the layers in place.

    `fetch` takes items and an epoch, and gives the inputs of these items in it; `targets` gives their labels, and the
    weights of 7.7 or None. `held` are inputs, labels and shares of the validation items, or None. `lengths`: of 25.89.
    """
    batch = args.batch or n
    steps = ceil(n / batch)
    schedule = stages.schedule(args.stages, steps) if args.stages else Schedule(
        args.schedule, args.lr, args.warmup, args.lr_step, args.lr_gamma, args.epochs * steps, args.lr_min
    )
    full = ceil(min(batch, n) / args.grain)
    h = (full - 1).bit_length()  # 8.7: the smallest with 2^h >= full
    limit = np.float32(2.0 ** (62 - max(h, 1)))

    product = products.of(args.arith)
    start = int(digest_of(args.init_from)[:8], 16) if args.init_from else None
    network.initialise(layers, args.seed, args.init, start if args.new_last == 2 else None)
    roles = lora.roles(network.model_text(layers), args.lora)
    lora.initialise(layers, roles, args.seed, start)
    if args.optimizer == "lbfgs" and args.init == "auto" and len(layers) == 1:
        layers[0].weight = np.zeros_like(layers[0].weight)
    if args.init_from:
        start_from(args.init_from, lora.of_start(layers, roles), args.new_last)
    if args.optimizer == "lbfgs":
        return minimise(args, layers, fetch, *targets(np.arange(n), 0), held, product)
    best = None  # 7.5: the loss, the epoch from 1, the parameters
    optimiser = Optimiser(settings, parameters_of(layers))
    rules = [rule for layer in weighted(layers) for rule in layer.rules]
    still, fixed = still_of(args, layers)
    trained = [not own for layer, own in zip(layers, still) if layer.has_parameters]
    factors = [f for layer, f in zip(layers, depth_factors(layers, args.lr_depth)) for _ in layer.arrays]
    mixes = mix.Mix(args) if args.mixup or args.cutmix else None
    averages = parameters_of(layers)
    for epoch in range(args.epochs):
        order = permutation(args.seed, n, ORDER, epoch)
        if args.group_lengths:
            order = by_length(args.seed, epoch, order, lengths, args.batch, args.group_lengths)
        loss, right, mixed = 0, 0, None
        for s in range(steps):
            items = order[s * args.batch : (s + 1) * args.batch]
            others = order[mix.partners(range(s * args.batch, s * args.batch + len(items)), n)]
            shown = fetch(items, epoch, others, mixes) if mixes else fetch(items, epoch)
            passes = network.forward(layers, shown, args.seed, epoch, items, product, args.grain, still)
            labels, own = targets(items, epoch, others, mixes)
            values = network.losses(args.loss, passes, labels, args.delta)
            if mixes and not several.is_several(labels):  # 24.57
                first, second, _ = mixes.shares(epoch, items)
                mixed = targets(others, epoch)[0], first, second
                values = first * values + second * network.losses(args.loss, passes, mixed[0])
            values = values if own is None else values * own
            loss += network.loss_units(values, args.grain)
            right += int((found(args.loss, passes, labels) == labels).sum())
            deltas = network.deltas(args.loss, layers, passes, labels, args.unit, product,
                                    args.delta, own, args.smoothing, args.grain, mixed)
            sums = network.sums(layers, passes, deltas, args.grain, limit, product)
            flat = [total * trains for pair, trains in zip(sums, trained) for total in pair]
            lr = schedule.lr(epoch * steps + s, epoch)
            old = parameters_of(layers)
            new = optimiser.step(old, flat, rules, len(items), args.unit, lr, factors)
            new = [a if keeps else b for a, b, keeps in zip(old, new, fixed)]
            set_parameters(layers, new)
            averages = averaged(averages, new, args.ema, epoch * steps + s, fixed)
        print(f"epoch {epoch + 1} loss {loss / 2**32 / n:.9g} accuracy {right / n:.6f}")
        if held and (args.keep == "best" or args.patience):
            set_parameters(layers, averages)
            value = held_loss(args, layers, product, held, n)
            if best is None or value < best[0]:
                best = value, epoch + 1, averages
            set_parameters(layers, new)
            if args.patience and epoch + 1 >= best[1] + args.patience:
                break
    set_parameters(layers, best[2] if args.keep == "best" else averages)


def found(loss, passes, labels):
    """6.6, 24.74."""
    several_ = several.is_several(labels)
    return several.classes(loss, passes[-1].y, labels) if several_ else network.classes(passes, loss)


def minimise(args, layers, fetch, labels, shares, held, product):
    """17.14 in the place of sections 9 and 10."""
    n = len(labels)
    items = np.arange(n)
    shown = fetch(items, 0)
    still, fixed = still_of(args, layers)
    h = (ceil(n / args.grain) - 1).bit_length()
    limit = np.float32(2.0 ** (62 - max(h, 1)))
    shapes = [array.shape for array in parameters_of(layers)]
    rules = [rule for layer in weighted(layers) for rule in layer.rules]
    penal = np.concatenate([np.full(np.prod(shape), rule == "weight") for shape, rule in zip(shapes, rules)])
    keeps = np.concatenate([np.full(np.prod(shape), own) for shape, own in zip(shapes, fixed)])
    penal[keeps] = False

    def place(point):
        new = np.split(point, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        set_parameters(layers, [own.reshape(shape) for own, shape in zip(new, shapes)])

    def evaluate(point):
        place(point)
        passes = network.forward(layers, shown, args.seed, 0, items, product, args.grain, still)
        values = network.losses(args.loss, passes, labels, args.delta)
        values = values if shares is None else values * shares
        deltas = network.deltas(args.loss, layers, passes, labels, args.unit, product, args.delta,
                                shares, args.smoothing, args.grain)
        try:
            loss = network.loss_units(values, args.grain)
            sums = network.sums(layers, passes, deltas, args.grain, limit, product)
        except SystemExit:  # 8.7: out of range
            return None
        flat = np.concatenate([total.ravel() for pair in sums for total in pair])
        flat[keeps] = 0
        if args.no_intercept and layers[-1].biased:
            flat[flat.size - sums[-1][1].size:] = 0
        return (np.float64(loss) * 2.0**-32 / np.float64(n),
                flat.astype(np.float64) * (2.0**-args.unit / np.float64(n)))

    start = np.concatenate([array.ravel() for array in parameters_of(layers)])
    state = lbfgs.Lbfgs(start, penal, evaluate, args.weight_decay, args.l1, args.tolerance)
    best = None
    for step in range(args.epochs):
        if state.converged or not state.iterate():
            break
        print(f"iteration {step + 1} value {state.value:.9g} largest {state.largest:.3g}")
        place(state.point)
        if held and (args.keep == "best" or args.patience):
            value = held_loss(args, layers, product, held, n)
            if best is None or value < best[0]:
                best = value, step + 1, state.point
            if args.patience and step + 1 >= best[1] + args.patience:
                break
    place(best[2] if args.keep == "best" else state.point)


def averaged(averages, parameters, ema, t, fixed):
    """24.63: the averages after a step, `t` steps before it; arrays that are `fixed` do not train."""
    if ema == 0:
        return parameters
    done = integer(t)
    d = (ONE + done) / (integer(10) + done)
    q = ONE - min(d, ema)
    return [a if keeps else fma(q, w - a, a) for a, w, keeps in zip(averages, parameters, fixed)]


def depth_factors(layers, depth):
    """24.62: the factor of the learning rate of each layer."""
    reads = [min(layer.source, layer.source if layer.other is None else layer.other) for layer in layers]
    parts, part = [], 0  # counted from the first piece with weights
    for k, layer in enumerate(layers):
        begins = all(source >= k - 1 for source in reads[k:])
        end = next(e for e in range(k + 1, len(layers) + 1) if all(source >= e - 1 for source in reads[e:]))
        if begins and any(own.is_tied or "weight" in own.rules for own in layers[k:end] if own.has_parameters or own.is_tied):
            part += 1
        parts.append(max(part, 1))
    factors = [ONE] * (part + 2)
    for p in reversed(range(1, part)):
        factors[p] = factors[p + 1] * depth if depth else ONE
    return [factors[p] for p in parts]


def still_of(args, layers):
    """24.61, 25.85, 25.86: whether each layer does not train, and whether each array does not."""
    runs = [map(int, run.split("..")) for run in args.freeze.split(",")] if args.freeze else []
    named = {l for first, last in runs for l in range(first, last + 1)}
    still = [l in named for l in range(len(layers))]
    if args.lora:
        roles = lora.roles(network.model_text(layers), args.lora)
        still = [roles.get(l) not in ("down", "up") for l in range(len(layers))]
        still[-1] = still[-1] and not args.new_last
    return still, [own for layer, own in zip(layers, still) for _ in layer.arrays]


def start_from(path, layers, new_last):
    """6.2: the parameters of a model; 24.60: but those of its last layer."""
    tensors = tensors_in(path)
    for l, layer in enumerate(layers[:-1] if new_last else layers):
        if layer.normalises:
            layer.arrays = [tensors[f"layer{l}.{name}"] for name in NAMES[: len(layer.arrays)]]
        elif layer.has_parameters:
            own = from_file(layer, tensors[f"layer{l}.weight"])
            assert own.shape == layer.weight.shape
            layer.weight = own
            if layer.biased:
                layer.bias = tensors[f"layer{l}.bias"]
    assert f"layer{len(layers)}.weight" not in tensors


def weighted(layers):
    return [layer for layer in layers if layer.has_parameters]


def parameters_of(layers):
    return [array for layer in weighted(layers) for array in layer.arrays]


def set_parameters(layers, new):
    new = list(new)
    for layer in weighted(layers):
        layer.arrays = [new.pop(0) for _ in layer.arrays]


def narrow(args, table, exact, offsets):
    """23.6: the columns with differences in the place of wide ones."""
    for k, offset in offsets.items():
        values = exact.get(k) or [None if np.isnan(value) else Fraction(float(value)) for value in table[:, k]]
        table = table.astype(np.float32)
        table[:, k] = wide.differences(values, offset, args.missing == "zero")
    return table


def some(columns, items):
    """Of columns by their numbers, the values of these items."""
    return {k: [values[i] for i in items] for k, values in columns.items()}


def validation_file(args, names, labels):
    """2.8: the columns and labels of the file as the model has them, and their digest; no digest
    where it decides on nothing."""
    task = "regress" if labels.dtype == np.float32 else "classify"
    table, own, has = data.read(args.valid_file, args.valid_labels, args.label, task, args.weight,
                                known=validation.known_categories(names),
                                rules=set(getattr(names, "rules", "").split()), form=args.date_format,
                                alone=validation.names_of(names))
    table, own, digest, *more = validation.as_model(table, own, has, names)
    return (table, own, *more), digest if args.keep == "best" or args.patience else ""


def validation_items(args, kinds, fill, stats, target, offsets, table, labels, whole, exact, moments):
    """7.5: the inputs and labels of the items that judge."""
    table = narrow(args, table, exact, offsets)
    if args.missing == "error" and len(whole) < len(table):
        raise SystemExit("oracle: values are missing")
    if args.missing == "drop":
        table, labels, moments = table[whole], labels[whole], some(moments, whole)
    x = scale.inputs(columns.inputs_of(table, kinds, fill, moments), args.scale, stats)
    if target is not None:
        mean, deviation = target
        mean, _, inverse = scale.kept({"target.mean": mean, "target.deviation": deviation}, "target")
        labels = (labels - mean) * inverse
    return x, labels, None


def main():
    args = arguments()
    table, labels, names = data.read(args.data, args.labels, args.label, args.task, args.weight,
                                     category=args.category, drop=args.drop, parts=args.dates, form=args.date_format,
                                     **({"tokens": args.tokens} if args.tokens else {}),
                                     **({"text": args.text} if args.text else {}))
    texts.choose(names, args.text_features)
    own = data.read_weights(args.data, args.weight) if args.weight else (None, None)
    if len(table) != len(labels):
        raise SystemExit("oracle: there are not as many labels as items")
    kinds = columns.kinds_of(names, table.shape[1])
    width = sum(sum(columns.widths_of(kind)) for kind in kinds) + sum(2 ** part["bits"] for _, part in texts.columns_of(names))
    layers = network.parse_model(args.model, args.shape or width, labels.dtype == np.int64)
    attention.choose(layers, args.attention_arith, args.arith)
    real = labels.dtype == np.float32
    known = 2 if args.loss == "binary" else layers[-1].out[0]
    if real and (layers[-1].outputs != 1 or args.loss not in ("mse", "mae", "huber")):
        raise SystemExit("oracle: real labels ask for one output, and for mse, mae or huber")
    counted = labels[~several.is_ignored(labels)] if several.is_several(labels) else labels
    if not real and counted.max() >= known:
        raise SystemExit("oracle: a label is not less than the number of last outputs")
    if args.loss == "cross-entropy" and layers[-1].activation != "softmax":
        raise SystemExit("oracle: cross-entropy asks for softmax at the end")
    settings = settings_of(args)
    classes = weighing.names_of(names, known)
    if args.class_weight:
        args.class_weight = weighing.canonical(args.class_weight, classes)
    recipe = recipe_of(args, table, labels, names, layers, settings, own)
    shaped = args.augment or args.cutmix or args.scale == "channel"
    if any(layer.window for layer in layers) or shaped:
        pixels = getattr(layers[0].window, "kind", "embedding") != "embedding" or shaped
        recipe["shape"] = "x".join(map(str, args.shape)) if pixels else ""
    own = own[0]
    beside = None
    if args.valid_file:
        beside, recipe["valid_data"] = validation_file(args, names, labels)

    exact, moments = (names["exact"], names["moments"]) if names else ({}, {})
    if getattr(names, "rules", ""):
        recipe["rules"] = names.rules
    if moments:
        recipe["date_format"] = args.date_format
    whole = columns.complete(table)
    if args.missing == "error" and len(whole) < len(table):
        raise SystemExit("oracle: values are missing")
    if args.missing == "drop":
        table, labels = table[whole], labels[whole]
        exact, moments = some(exact, whole), some(moments, whole)
        own = None if own is None else own[whole]
    chosen = data.training_items(args.seed, len(table), args.valid)
    others = np.setdiff1d(np.arange(len(table)), chosen)
    own, shares = weighing.of_items(own, args.class_weight, classes, labels, chosen, others)
    weights = shares
    if several.is_several(labels):
        shares = several.shares(shares, labels)
    kept = tensors_in(args.init_from) if args.init_scale == "keep" else None
    offsets = {}
    if args.scale != "none":
        offsets = {k: wide.offset_of([values[i] for i in chosen]) for k, values in exact.items()}
    if kept and offsets:
        offsets = dict(zip(sorted(offsets), kept["table.offset"]))
    table = narrow(args, table, exact, offsets)
    fill = columns.fill_of(table[chosen], kinds, args.missing, own)
    if kept and args.missing in ("mean", "median"):
        fill = kept["table.fill"]
    words, idf = texts.inputs(table, names, chosen)
    table = columns.inputs_of(table, kinds, fill, moments)
    stats = None
    if args.scale in ("standard", "channel", "minmax", "robust") and kept:
        stats = scale.kept(kept, "scale")
    elif args.scale_numbers:
        stats = scale.given(args.scale_numbers, table.dtype == np.uint8)
    elif args.scale == "channel":
        stats = scale.of_channels(table[chosen], args.shape, own)
    elif args.scale in ("minmax", "robust"):
        stats = columns.unscaled_categories(scale.by_order(table[chosen], args.scale, own), kinds)
    elif args.scale == "standard":
        stats = columns.unscaled_categories(scale.statistics(table[chosen], own), kinds)
    for own_words in words:  # 25.60
        table = np.concatenate([table.astype(np.float32), own_words], axis=1)
        more = [np.full(own_words.shape[1], value, np.float32) for value in (0, 1, 1)]
        stats = stats and tuple(np.concatenate(pair) for pair in zip(stats, more))
    x = from_data(scale.inputs(table, args.scale, stats), layers[0].shape)
    target = None
    if real:
        labels, target = scale.targets(labels, chosen, own, kept and scale.kept(kept, "target"))
    held = None
    if beside:
        held = validation_items(args, kinds, fill, stats, target, offsets, *beside)
        held = from_data(held[0], layers[0].shape), *held[1:]
    if len(others):
        held = x[others], labels[others], None if shares is None else shares[others]
    values = table[chosen]

    def changed(items, epoch):
        return augment.values(args.augment, values, args.shape, args.seed, epoch, items) if args.augment else values[items]

    def fetch(items, epoch, others=None, mixes=None):
        if not args.augment and not mixes:
            return x[chosen][items]
        own = changed(items, epoch)
        if mixes:
            own = mixes.values(own, changed(others, epoch), epoch, items)
        return from_data(scale.inputs(own, args.scale, stats), layers[0].shape)

    def targets(items, epoch, others=None, mixes=None):
        own, divided = labels[chosen][items], None if shares is None else shares[chosen][items]
        if labels.ndim < 3 or not (args.augment or mixes):
            return own, divided
        moved = [augment.masks(args.augment, labels[chosen], args.seed, epoch, some)
                 for some in ([items, others] if mixes else [items])]
        own = mixes.masks(*moved, epoch, items) if mixes else moved[0]
        return own, several.shares(None if weights is None else weights[chosen][items], own)

    lengths = tokens_of_items(values, layers[0].window.tokens) if args.group_lengths else None
    train(args, layers, settings, fetch, targets, len(chosen), held, lengths)

    if not all(np.isfinite(array).all() for array in parameters_of(layers)):
        raise SystemExit("oracle: a parameter is not finite")  # 8.7
    if args.missing not in ("mean", "median"):
        fill = None
    left_out = still_of(args, layers)[0] if args.lora else [False] * len(layers)  # 25.87
    content = model_bytes(recipe, tensors_of(layers, left_out, stats, target, fill, offsets, idf))
    with open(args.output, "wb") as file:
        file.write(content)
    print(f"model {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
