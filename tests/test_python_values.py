"""Values and labels as they come from programs of others: masked, bytes, dates, columns without texts
as names; and lists that do not fit the items."""

import datetime
import decimal

import pytest

import python_package

np = pytest.importorskip("numpy")

TWO = [[1.5], [2.5]]
SMALL = {"epochs": 2, "threads": 1, "devices": "cpu", "model": "dense 4 relu; dense 2 softmax"}


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


@pytest.fixture(scope="module")
def pandas():
    return pytest.importorskip("pandas")


@pytest.mark.parametrize("labels, words", [
    ([0], "1 labels for 2 items"), ([0, 1, 0], "3 labels for 2 items"), ([0, 0.5], "whole number"),
    (["x", "y"], "indices"), ([0, 2**32], "beyond 32 bits"), ([0, None], "missing")])
def test_indices_into_classes_are_checked(q, labels, words):
    with pytest.raises(q.InputError, match=words):
        q.Data(TWO, labels, classes=["x", "y"])
    good = q.Data(TWO, [False, True], classes=["x", "y"])
    assert good.labels.tolist() == [0, 1] and good.class_names == ["x", "y"]
    several = q.Data(TWO, [[0, 1], [1, 0]], classes=["x", "y"])
    assert several.class_names == ["x", "y"] and several.labels is None


@pytest.mark.parametrize("kind", ["<f4", ">f8", "i2", object])
def test_masked_values_are_missing(q, kind):
    """NumPy's own conversion forgets the mask and shows the values under it."""
    values = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]], dtype=kind)
    found = q.Data(values, [0, 1])
    np.testing.assert_array_equal(found.values, [[1, np.nan], [3, 4]])
    assert q.Data(np.ma.masked_array([[1, 2]], dtype=np.uint8)).values.dtype == np.uint8
    with pytest.raises(q.InputError, match="finite|missing"):
        q.Data(TWO, np.ma.masked_array([0, 1], [True, False], dtype=kind))
    with pytest.raises(q.InputError, match="NaN"):
        q.Classifier(epochs=1).fit(values, [0, 1])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_in_any_order_of_the_memory(q, kind):
    values = np.random.default_rng(2).normal(size=(300, 40)).astype(kind)
    values[7, 3] = np.nan
    wanted = q.Data(values.astype(np.float32)).digest
    wide = np.zeros((300, 80), kind)
    wide[:, ::2] = values
    for given in values, np.asfortranarray(values), wide[:, ::2], np.flipud(np.flipud(values).copy()):
        assert q.Data(given).digest == wanted
    for given in np.full((3, 2), 1e39), np.asfortranarray([[1, 2], [3, np.inf]]):
        with pytest.raises(q.InputError, match="finite"):
            q.Data(given)


def test_bytes_are_texts(q):
    """Arrays of NumPy's type S, as scipy.io.arff and h5py give them."""
    data = q.Data(np.array([[b"a"], ["ü".encode()]]), [b"yes", "nö".encode()])
    assert data.categories == [["a", "ü"]] and data.class_names == ["nö", "yes"]


DATES = [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]


@pytest.mark.parametrize("make, kind, first", [
    (lambda p: p.to_datetime(DATES), "time", "2026-01-01T00:00:00"),
    (lambda p: p.to_datetime(DATES).as_unit("s"), "time", "2026-01-01T00:00:00"),
    (lambda p: p.to_datetime(DATES).tz_localize("Asia/Kolkata"), "UTC time", "2025-12-31T18:30:00Z"),
    (lambda p: p.period_range("2026-11", periods=2), "time", "2026-11-01T00:00:00"),
    (lambda p: p.period_range("2026-11", periods=2, freq="M"), "time", "2026-11-01T00:00:00"),
    (lambda p: p.Series(DATES, dtype=object), "date", "2026-01-01"),
    (lambda p: p.Series([datetime.datetime(2026, 11, 5, 1, 2, 3, 4), None], dtype=object), "time",
     "2026-11-05T01:02:03.000004"),
    (lambda p: p.Series([datetime.datetime(2026, 11, 5, tzinfo=datetime.timezone.utc)] * 2,
                        dtype=object), "UTC time", "2026-11-05T00:00:00Z"),
    (lambda p: p.Series(["2026-11-05", "2026-11-06"]), "date", "2026-11-05")])
def test_dates_of_pandas(q, pandas, make, kind, first):
    frame = pandas.DataFrame({"a": [1, 2], "day": make(pandas), "y": [0, 1]})
    data = q.Data(frame, label="y", dates=["year", "days"])
    assert data.dates == [None, ("year,days", kind)]
    assert data.date(0, 1) == first and (data.date(1, 1) == "") == (frame["day"].isna()[1])
    apart = q.Data(frame[["a", "day"]], [0, 1], dates="year,days")
    assert apart.dates == data.dates and apart.digest == data.digest
    assert apart.date(0, 1) == first
    assert q.Data(frame[["a", "day"]], [0, 1], drop="day").names == ["a"]


def test_spans_of_time(q, pandas):
    frame = pandas.DataFrame({"a": pandas.to_timedelta([1.5, None], unit="s"), "y": [0, 1]})
    assert q.Data(frame, label="y").values[0, 0] == 1.5


@pytest.mark.parametrize("make", [
    lambda p: p.Series([datetime.time(1, 2)] * 2, dtype=object),
    lambda p: p.Series([DATES[0], datetime.datetime(2026, 1, 1)], dtype=object),
    lambda p: p.Series([[1, 2], [3]], dtype=object)])
def test_times_and_lists_are_refused_by_name(q, pandas, make):
    frame = pandas.DataFrame({"a": [1, 2], "day": make(pandas)})
    with pytest.raises(q.InputError, match="day.*(dates|lists)"):
        q.Data(frame, [0, 1])
    assert q.Data(frame, [0, 1], drop="day").names == ["a"]
    with pytest.raises(ValueError, match="dates|lists"):
        q.Classifier(epochs=1).fit(frame, [0, 1])


UNITS = ["Y", "M", "W", "D", "7D", "h", "m", "25m", "s", "10s", "ms", "3ms", "us", "250us", "ns", "20ns", "ps", "as"]


@pytest.mark.parametrize("unit", UNITS)
def test_arrays_of_dates(q, unit):
    """Beside NumPy's own texts. What is below a microsecond is cut off, and days are not times."""
    generator = np.random.default_rng(3)
    ends = np.array(["0001-01-01", "9999-12-31"], "M8[D]") if unit not in ("ns", "20ns", "ps", "as") else \
        np.array([-2**62, 2**62], "i8").view(f"M8[{unit}]" if unit != "20ns" else "M8[ns]")
    low, high = ends.astype(f"M8[{unit}]").view("i8")
    for order in "<>":
        values = generator.integers(low, high, (12, 3), endpoint=True).view(f"M8[{unit}]")
        values[3, 1] = "NaT"
        data = q.Data(values.astype(values.dtype.newbyteorder(order)), np.arange(12) % 2)
        days = unit[-1] in "YMWD"
        assert [of[1] for of in data.dates] == ["date" if days else "time"] * 3
        for i, row in enumerate(values.astype("M8[D]" if days else "M8[us]").tolist()):
            for k, moment in enumerate(row):
                found = data.date(i, k)
                assert (found == "") == (moment is None)
                if moment is not None:
                    assert type(moment).fromisoformat(found) == moment
    assert q.Data(values, dates="year,hour").dates[0][0] == "year,hour"
    assert q.Data(values[:, 0][:, None].tolist() if unit == "us" else values[:, :1]).date(0, 0) == data.date(0, 0)


@pytest.mark.parametrize("number, unit", [
    (2**62, "Y"), (8030, "Y"), (-1970, "Y"), (2**62, "h"), (-2**62, "D"), (2**32 + 5, "D"), (2**62, "10s"), (2**61, "ms"),
    (1, "2000000000Y"), (-719163, "D"), (2932897, "D")])
def test_dates_far_away_are_refused(q, number, unit):
    """NumPy's conversions would wrap around to some other date."""
    with pytest.raises(q.InputError, match="item 1, column 1: .*year 1 or after year 9999"):
        q.Data(np.array([[0], [number]], "i8").view(f"M8[{unit}]"))
    with pytest.raises(q.InputError, match="too far away|year 9999"):
        q.Data(np.array([[np.datetime64(0, "D")], [np.datetime64(number, unit)]], object))


def test_spans_and_units(q, pandas):
    spans = np.array([[90, -7], [1, 2]], "i8").view("m8[m]")
    spans[1, 1] = "NaT"
    np.testing.assert_array_equal(q.Data(spans).values, [[5400, -420], [60, np.nan]])
    assert q.Data(np.array([[1500]], "m8[ms]")).values[0, 0] == 1.5
    for wrong in np.array([[5]], "m8[Y]"), np.array([[2**60]], "m8[D]"), np.array([[5]], "i8").view("m8"), np.array([[5]], "i8").view("M8"):
        with pytest.raises(q.InputError, match="unit|64 bits"):
            q.Data(wrong)
    for wrong in np.timedelta64(5, "Y"), np.timedelta64(2**60, "D"):
        with pytest.raises(q.InputError, match="too far away"):
            q.Data(np.array([[wrong], [datetime.timedelta(1)]], object))
    # Nothing but missing dates; as in a frame beside labels.
    nothing = np.array([["NaT"], ["NaT"]], "M8")
    for given in nothing, nothing.astype("M8[ns]"), pandas.DataFrame({"d": pandas.to_datetime(["NaT", "NaT"])}):
        assert np.isnan(q.Data(given, [0, 1]).values).all()
    masked = np.ma.masked_array(np.array([DATES, DATES], "M8[ns]"), [[False, True], [False, False]])
    assert [q.Data(masked).date(i, 1) for i in (0, 1)] == ["", "2026-01-02T00:00:00"]
    with pytest.raises(TypeError, match="arrays of dates"):
        q.Data(TWO, dates="year")
    with pytest.raises(q.InputError, match="batches hold numbers"):
        q.Data.from_batches([nothing])


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_are_those_of_frames(q, pandas, unit):
    """The same digests, models and predictions, of networks by functions and by estimators."""
    moments = np.arange(40)[:, None] * np.array([[29, 5]]) + np.datetime64("2024-01-30", unit if unit == "D" else "m")
    moments = moments.astype(f"M8[{unit}]")
    frame = pandas.DataFrame(moments) if unit != "D" else pandas.DataFrame(moments.astype(object))
    y = np.arange(40) % 2
    array, table = q.Data(moments, y), q.Data(frame, y)
    assert array.digest == table.digest and array.dates == table.dates
    model = q.train(array, progress=False, **SMALL)
    assert model.digest == q.train(table, progress=False, **SMALL).digest
    assert model.recipe["table"]["features"][0]["dates"][0] == "year"
    np.testing.assert_array_equal(model.predict(moments), model.predict(frame))
    # Weights repeat items, whose moments go with them; equal items stand in one order.
    weights = np.arange(40) % 3
    kind = {"epochs": 2, "model": SMALL["model"]}
    first = q.Classifier(**kind).fit(moments, y, sample_weight=weights)
    rows = np.random.default_rng(4).permutation(np.arange(40).repeat(weights))
    again = q.Classifier(**kind).fit(pandas.DataFrame(moments[rows]) if unit != "D" else frame.iloc[rows], y[rows])
    assert first.model_.digest == again.model_.digest
    assert "dates" in first.model_.recipe["table"]["features"][1]
    np.testing.assert_array_equal(first.predict(moments), again.predict(frame))
    assert q.replay(first.model_, first.data(moments, y, weights), progress=False).digest == first.model_.digest
    objects = moments.astype("M8[us]" if unit != "D" else "M8[D]").astype(object)  # datetime's own
    assert q.Classifier(**kind).fit(objects, y, weights).model_.digest == first.model_.digest
    gaps = moments.copy()
    gaps[3, 0] = "NaT"
    with pytest.raises(q.InputError, match="NaN"):
        q.Classifier(**kind).fit(gaps, y)
    assert q.Classifier(missing="mean", **kind).fit(gaps, y).model_.recipe["missing"] == "mean"
    # One epoch more with other dates keeps the parts of the first ones; the other estimators get the days.
    more = q.Classifier(**kind).partial_fit(moments, y, classes=[0, 1]).partial_fit(moments.astype("M8[D]"), y)
    assert more.model_.recipe["table"] == first.model_.recipe["table"]
    np.testing.assert_array_equal(q.StandardScaler().fit(moments).mean_, moments.astype("M8[D]").astype(float).mean(0))


def test_labels_of_pyarrow(q):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")
    for labels in (pa.array(["u", "v"]), pa.chunked_array([["u"], ["v"]])):
        assert q.Data(TWO, labels).class_names == ["u", "v"]
        assert q.Classifier(epochs=1).fit(TWO, labels).classes_.tolist() == ["u", "v"]
    assert q.Data(TWO, pa.array([1.5, 2.0])).targets.tolist() == [1.5, 2]
    for gaps in (pa.array(["u", None]), pa.array([1, None])):
        with pytest.raises(q.InputError, match="missing|finite"):
            q.Data(TWO, gaps)


@pytest.mark.parametrize("given", [None, 3, {"a": [1, 2]}, iter([[1], [2]])])
def test_what_is_no_table(q, given):
    with pytest.raises(q.InputError, match=f"not a table.*{type(given).__name__}.*DataFrame"):
        q.Data(given, [0, 1])


def test_what_is_no_table_yet(q, pandas):
    with pytest.raises(q.InputError, match="to_frame"):
        q.Data(pandas.Series([1, 2]), [0, 1])
    for empty in (pandas.DataFrame(), pandas.DataFrame(index=[1, 2])):
        with pytest.raises(q.InputError, match="at least one"):
            q.Data(empty)
        with pytest.raises(q.InputError, match="at least one"):
            q.Classifier().fit(empty, [])


def test_a_polars_table_that_is_not_read_yet(q):
    polars = pytest.importorskip("polars", reason="polars is not installed (pip install polars)")
    with pytest.raises(q.InputError, match="collect"):
        q.Data(polars.LazyFrame({"a": [1, 2]}), [0, 1])


def test_columns_with_and_without_texts_as_names(q, pandas):
    """An array with a column of labels at its side, as table["y"] = ... makes it."""
    values = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    frame = pandas.DataFrame(values)
    frame["y"] = np.where(values[:, 0] > 0, "p", "n")
    model = q.train(frame, label="y", **SMALL)
    assert model.names is None and model.classes == ["n", "p"]
    assert (model.predict(frame) == model.predict(values)).all()


def test_numbers_as_names_are_no_places(q, pandas):
    """pandas counts columns from 0, a label's number counts from 1."""
    frame = pandas.DataFrame([[1, 2, 0], [3, 4, 1]])
    with pytest.raises(q.UsageError, match="columns=str"):
        q.Data(frame, label=2)
    assert q.Data(frame.rename(columns=str), label="2").labels.tolist() == [0, 1]
    assert q.Data(frame, label=3).labels.tolist() == [0, 1]
    assert q.Data(frame, label="2").class_names == ["2", "4"]


@pytest.mark.parametrize("names", [["", "b"], ["a", "", ""], ["a", "a", "b"], [("a", 1), ("a", ""), ("b", 1)]])
def test_names_that_train_also_predict(q, pandas, names):
    """With names that are empty, that several columns have, or that are tuples."""
    values = np.random.default_rng(1).normal(size=(20, len(names)))
    tuples = isinstance(names[0], tuple)
    frame = pandas.DataFrame(values, columns=pandas.MultiIndex.from_tuples(names) if tuples else names)
    more = frame.copy()
    label = ("y", "") if tuples else "y"
    more[label] = np.where(values[:, 0] > 0, "p", "n")
    wanted = q.train(q.Data(values, more[label].to_numpy()), **SMALL).predict(values)
    if tuples:
        with pytest.raises(q.UsageError, match="set_axis"):
            q.Data(more, label=label)
        more, label = more.set_axis(map(str, more.columns), axis=1), "('y', '')"
    made = q.train(more, label=label, **SMALL)
    plain = more.drop(columns=label)
    for given in more, plain, more.iloc[:, ::-1] if len(set(names)) == len(names) else plain:
        assert (made.predict(given) == wanted).all()
    beside = q.train(q.Data(frame, more[label].to_numpy()), **SMALL)
    assert (beside.predict(frame) == wanted).all()


def test_other_columns_of_one_name_are_left_out(q, pandas):
    values = np.random.default_rng(2).normal(size=(20, 2))
    made = q.train(q.Data(pandas.DataFrame(values, columns=["a", "b"]), [0, 1] * 10), **SMALL)
    wide = pandas.DataFrame(np.c_[values[:, :1] * 0, values, values[:, 1:] * 0], columns=["z", "a", "b", "z"])
    assert (made.predict(wide) == made.predict(values)).all()


def test_numbers_of_classes_beyond_31_bits(q, pandas, tmp_path):
    """They would wrap to another class: the message says what to do, and that works."""
    values, file = np.arange(12.0).reshape(6, 2), tmp_path / "t.csv"
    for big in (2**31, -2**31, 2**32, 2**63 - 1, 2**63):
        numbers = np.array([big, 7] * 3, np.uint64 if big >= 2**63 else np.int64)
        frame = pandas.DataFrame(values, columns=["a", "b"]).assign(y=numbers)
        frame.to_csv(file, index=False)
        for read in (lambda: q.Data(values, numbers), lambda: q.Data(frame, label="y"),
                     lambda: q.Data(values, frame["y"].astype(object)), lambda: q.open(file, label="y")):
            with pytest.raises(q.InputError, match="(?s)(2.31|32 bits).*must be texts.*regress"):
                read()
        made = q.Data(values, numbers.astype(str))
        assert made.class_names == sorted(["7", str(big)]) and set(q.Data(
            frame.assign(y=frame["y"].astype(str)), label="y").class_names) == {"7", str(big)}
        found = q.Classifier(model="dense 2 softmax", epochs=1).fit(values, numbers)
        assert found.classes_.tolist() == sorted([7, big]) and set(found.predict(values)) <= {7, big}


class Strange:
    """Its text holds the address of the object, which differs in each process."""


def test_columns_and_labels_of_objects(q, pandas):
    for value, words in ((1j, "complex.*imaginary"), (Strange(), "Strange.*convert")):
        column = pandas.Series([value, None], dtype=object)
        for read in (lambda: q.Data(pandas.DataFrame({"x": column, "y": [0, 1]}), label="y"),
                     lambda: q.Data(TWO, pandas.Series([value] * 2, dtype=object)),
                     lambda: q.Data(np.array([[value], [2]], object))):
            with pytest.raises(q.InputError, match=f"(?s){words}"):
                read()
    with pytest.raises(q.InputError, match="complex.*imaginary"):
        q.Data(TWO, np.array([1j, 2]))
    halves = pandas.DataFrame({"x": np.array([0.1, np.nan], np.float16), "y": ["p", "q"]})
    np.testing.assert_array_equal(q.Data(halves, label="y").values, [[np.float32(np.float16(0.1))], [np.nan]])
    assert q.Data(TWO, [decimal.Decimal("1.5"), decimal.Decimal(2)], task="regress").targets.tolist() == [1.5, 2]


@pytest.mark.parametrize("kind", ["M8[D]", "M8[ns]", "m8[s]"])
def test_a_missing_date_is_not_a_class(q, kind):
    labels = np.array([1, 2]).astype(kind)
    assert q.Data(TWO, labels).class_names == sorted(map(str, labels))
    labels[1] = "NaT"
    with pytest.raises(q.InputError, match="missing"):
        q.Data(TWO, labels)
    with pytest.raises(q.InputError, match="NaN"):
        q.Classifier(epochs=1).fit(TWO, labels)


def test_lists_of_columns(q, pandas, tmp_path):
    frame = pandas.DataFrame({"a,b": [1, 2], 'c"': [3, 4], "d": [5, 6], "y": [0, 1]})
    file = tmp_path / "t.csv"
    frame.to_csv(file, index=False)
    for given in (frame, file):
        read = q.open if given is file else q.Data
        assert read(given, label="y", drop=["a,b", 'c"']).names == ["d"]
        assert read(given, label="y", features=['c"', 1]).names == ["a,b", 'c"']


def test_batches_of_columns_in_another_order(q, pandas):
    first = pandas.DataFrame({"a": [1.0], "b": [2.0]})
    with pytest.raises(q.InputError, match="batch 1.*b, a"):
        q.Data.from_batches([first, first[["b", "a"]]])


def test_texts_end_where_they_end(q):
    """A C string would end at the null character, and "a" would stand for both."""
    for names in ({"names": ["a\0b", "c"]}, {"classes": ["a\0b", "c"]}):
        with pytest.raises(q.InputError, match="null"):
            q.Data([[1, 2]], [0], **names)
    with pytest.raises(q.UsageError, match="model"):
        q.train(TWO, [0, 1], **{**SMALL, "model": "dense 2 softmax\0; dense 3"})


def test_images(q, tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)
    for i, kind in enumerate("ab"):
        (tmp_path / kind).mkdir()
        image.fromarray(pixels[i]).save(tmp_path / kind / "x.png")
    data = q.open(tmp_path)
    assert data.image_shape == (3, 4, 6) and data.files == ["a/x.png", "b/x.png"]
    assert np.array_equal(data.values.reshape(-1, 3, 4, 6), pixels.transpose(0, 3, 1, 2))
    assert data.class_names == ["a", "b"] and data.labels.tolist() == [0, 1]
    assert q.open(tmp_path, resize="2x3").image_shape == (3, 2, 3)
    assert q.Data(data.values).image_shape is None and q.Data(data.values).files is None
    (tmp_path / "b" / "y.png").write_bytes(b"")
    with pytest.raises(q.InputError, match="empty"):
        q.open(tmp_path)
    assert len(q.open(tmp_path, skip_broken=True)) == 2
    data.write_sheet(tmp_path / "sheet.png", augment="pad 1; crop; flip")
    sheet = np.asarray(image.open(tmp_path / "sheet.png"))
    assert sheet.shape == (2 + 2 * 6, 2 + 16 * 8, 3) and np.array_equal(sheet[2:6, 2:8], pixels[0])
    with pytest.raises(q.UsageError, match="turn"):
        data.write_sheet(tmp_path / "sheet.png", augment="turn")
    data.write_sheet(tmp_path / "sheet.png", mixup=0.5)
    assert image.open(tmp_path / "sheet.png").size == (2 + 16 * 98, 2 + 2 * (4 * 16 + 22))
    with pytest.raises(q.UsageError, match="one way only"):
        data.write_sheet(tmp_path / "sheet.png", mixup=0.5, cutmix=1)
    # The same images as arrays: with their shape, flat, with channels last, and as numbers of another type.
    data.write_sheet(tmp_path / "sheet.png")
    first, flat = pixels.transpose(0, 3, 1, 2), data.values
    for i, (array, shape) in enumerate(((first, None), (first, "3x4x6"), (flat, (3, 4, 6)))):
        q.Data(array, [0, 1]).write_sheet(tmp_path / f"{i}.png", shape=shape)
        assert (tmp_path / f"{i}.png").read_bytes() == (tmp_path / "sheet.png").read_bytes()
    for array, words in ((flat, "shape"), (pixels, "channels come first"), (first / 2, "whole numbers from 0 to 255"),
                         (first[:, :2], "channels come first")):
        with pytest.raises(q.InputError, match=words):
            q.Data(array, [0, 1]).write_sheet(tmp_path / "none.png")


def test_a_callback_may_say_false_in_numpy(q):
    model = q.train(TWO, [0, 1], on_epoch=lambda epoch: np.float64(1) < 0, **SMALL)
    assert len(model.history) == 1


@pytest.mark.parametrize("option", ["epochs", "batch"])
def test_zero_is_no_word_for_the_default(q, option):
    with pytest.raises(q.UsageError, match=option):
        q.Classifier(**{option: 0}).fit(TWO, [0, 1])


def test_a_path_is_no_address_of_a_model(q, tmp_path):
    for path in ("m.safetensors", tmp_path / "m.safetensors"):
        with pytest.raises(TypeError, match="quern.load"):
            q.Model(path)


def test_a_classifier_has_an_output_for_each_class(q):
    made = q.Classifier("dense 3 softmax", epochs=1)
    with pytest.raises(q.InputError, match="3 outputs.*2 classes.*{classes}"):
        made.fit(TWO, [0, 1])
    assert not hasattr(made, "model_")


@pytest.mark.parametrize("labels", [["a", None], ["a", float("nan")]])
def test_an_estimator_wants_all_labels(q, labels):
    with pytest.raises(q.InputError, match="None"):
        q.Classifier().fit(TWO, np.array(labels, object))


def test_labels_beside_a_data_set(q):
    """They would be ignored: the data set has labels or none."""
    with pytest.raises(q.UsageError, match="holds its own"):
        q.train(q.Data(TWO, [0, 1]), [1, 0], **SMALL)


@pytest.mark.parametrize("items", [2.5, "5", -1, 2**64 + 5])
def test_a_number_of_digits_is_whole(q, items):
    with pytest.raises(q.UsageError, match="items"):
        q.digits(items)


def test_weights_of_classes_by_a_dict(q):
    labels = ["a,b", 'c"=', "a,b", 'c"=']
    data = q.Data([[1.5], [2.5], [3.5], [4.5]], labels)
    asked = {"a,b": 1, 'c"=': 3}
    weighted = q.train(data, class_weight=asked, **SMALL)
    assert weighted.digest == q.train(data, class_weight='"a,b"=1,"c""="=3', **SMALL).digest
    assert weighted.digest != q.train(data, **SMALL).digest


@pytest.mark.parametrize("gone", ["sys.stderr.close()", "sys.stderr = None"])
@pytest.mark.parametrize("progress", [None, True])
def test_no_place_for_progress(gone, progress):
    """As in a service or under pythonw."""
    script = (f"import quern, sys\n{gone}\n"
              f"quern.train([[1.5], [2.5]], [0, 1], epochs=2, progress={progress})")
    assert python_package.python(script) == ""


def test_labels_of_a_file_are_not_an_array(q, tmp_path):
    (tmp_path / "t.csv").write_text("y,a\n0,1\n1,2\n")
    with pytest.raises(q.UsageError, match="column"):
        q.train(tmp_path / "t.csv", [0, 1], **SMALL)


@pytest.mark.parametrize("labels", [[3, 7], ["3", "7"], [-7, 1000000000], ["12345678901", "5"]])
def test_classes_that_are_whole_numbers_come_back_as_numbers(q, labels):
    model = q.train(TWO, labels, **SMALL)
    told, best = model.predict(TWO), model.predict(TWO, outputs=True).argmax(axis=1)
    assert told.dtype == np.int64 and sorted(model.classes) == sorted(map(str, labels))
    assert told.tolist() == [int(model.classes[k]) for k in best]


@pytest.mark.parametrize("labels", [["03", "7"], ["-0", "7"], ["3", "x"], ["1" * 19, "2"]])
def test_other_classes_come_back_as_texts(q, labels):
    told = q.train(TWO, labels, **SMALL).predict(TWO)
    assert told.dtype == object and set(told) <= set(labels)


def test_numbers_of_classes_where_an_item_lacks_a_value(q):
    values = np.array([[0.5], [1.5], [np.nan], [2.5]], np.float32)
    model = q.train(values, [3, 7, 3, 7], missing="drop", **SMALL)
    told = model.predict(values).tolist()
    assert told[2] is None and set(told) <= {3, 7, None} and type(told[0]) is int
    assert model.predict(values[:2]).dtype == np.int64


def test_a_classifier_gives_classes_as_they_were(q):
    assert set(q.Classifier(epochs=1).fit(TWO, [3, 7]).predict(TWO).tolist()) <= {3, 7}


def test_a_fit_that_fails_leaves_no_model_of_other_classes(q):
    made = q.Classifier(epochs=1).fit(TWO, ["a", "b"])
    made.epochs = 0
    with pytest.raises(q.UsageError):
        made.fit(TWO, ["c", "d"])
    with pytest.raises((ValueError, AttributeError), match="not fitted"):
        made.predict(TWO)


def test_images_are_augmented_and_scaled_by_channel(q):
    """What the options mean is told by whole runs of the command; here they arrive."""
    values = np.arange(40 * 27, dtype=np.uint32).reshape(40, 27).astype(np.uint8)
    labels = np.arange(40) % 2
    options = {"shape": "3x3x3", "scale": "channel", "augment": "pad 1; crop"}
    made = q.train(values, labels, **SMALL, **options)
    assert made.recipe["contract"] == 6 and made.recipe["scale"] == "channel"
    assert made.recipe["augment"] == "pad 1; crop"
    want = values.reshape(40, 3, 9).mean((0, 2))
    np.testing.assert_allclose(made.tensor("scale.mean"), want, rtol=1e-6)
    assert q.replay(made, values, labels).digest == made.digest
    assert q.train(values, labels, **SMALL, **{**options, "augment": "flip"}).digest != made.digest
    own = q.Classifier(epochs=2, scale="channel", options={"shape": "3x3x3", "augment": "flip"})
    assert own.fit(values, labels).model_.recipe["augment"] == "flip"
    own.partial_fit(values / 2, labels)
    np.testing.assert_allclose(own.model_.tensor("scale.mean"), want, rtol=1e-6)
