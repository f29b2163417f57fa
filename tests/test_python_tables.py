"""What the Python package takes as data: DataFrames, Arrow tables, DLPack, sparse matrices, batches."""

import datetime
import decimal

import pytest

import data_vectors
import python_package
from python_package import placed

np = pytest.importorskip("numpy")

SMALL = {"epochs": 3, "threads": 1, "devices": "cpu", "model": "dense 4 relu; dense 2 softmax"}
CITIES = ["Bern", "Zürich", "a name of more than twelve bytes", None]


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


def columns(items=200, seed=3):
    """A table as lists: texts, numbers and whole numbers, the first two with gaps; and labels."""
    draw = np.random.default_rng(seed)
    size = [float(x) for x in draw.normal(size=items).astype(np.float32)]
    size[5] = size[17] = None
    made = {"city": [CITIES[i] for i in draw.integers(0, 4, items)], "size": size,
            "count": draw.integers(0, 9, items).tolist()}
    made["sick"] = ["yes" if c == "Bern" or (s or 0) > 1 else "no"
                    for c, s in zip(made["city"], size)]
    return made


def csv_of(made, path):
    names = list(made)
    rows = zip(*made.values())
    path.write_text("\n".join([",".join(names)] + [
        ",".join("" if v is None else str(v) for v in row) for row in rows]) + "\n")
    return path


def pandas_table(made):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(made)


def pandas_categories(made):
    """Categories, of which one is never there, and types that have a mask; the index is not a column."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(made, index=range(1000, 1000 + len(made["size"])))
    kinds = pandas.CategoricalDtype(["Zürich", "Atlantis", "Bern", CITIES[2]])
    types = {"city": kinds, "size": "Float32", "count": "Int16", "sick": "string"}
    return frame.astype({name: kind for name, kind in types.items() if name in made})


def polars_table(made):
    polars = pytest.importorskip("polars", reason="polars is not installed (pip install polars)")
    return polars.DataFrame(made)


def polars_categories(made):
    polars = pytest.importorskip("polars", reason="polars is not installed (pip install polars)")
    return polars.DataFrame(made).with_columns(polars.col("city").cast(polars.Categorical))


def arrow_table(made):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")
    whole = pa.table(made)
    return pa.concat_tables([whole.slice(0, 77), whole.slice(77)])


def duckdb_relation(made):
    """A query that runs when its rows are asked for."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed (pip install duckdb)")
    base = duckdb.connect()
    columns_of = ", ".join(f'"{name}" {duckdb_type(values)}' for name, values in made.items())
    base.execute(f"CREATE TABLE made (place INTEGER, {columns_of})")
    rows = [[i, *row] for i, row in enumerate(zip(*made.values()))]
    base.executemany(f"INSERT INTO made VALUES ({', '.join('?' * (len(made) + 1))})", rows)
    return base.sql("SELECT * EXCLUDE place FROM made ORDER BY place")


def duckdb_type(values):
    value = next(v for v in values if v is not None)
    return {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}.get(type(value), "DATE")


def arrow_batch(made):
    """One with __arrow_c_array__, not __arrow_c_stream__."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")

    class Exporter:
        columns = list(made)

        def __arrow_c_array__(self, requested_schema=None):
            return pa.record_batch(made).__arrow_c_array__(requested_schema)

    return Exporter()


def arrow_batches(made):
    """An iterator, each batch with its own dictionary of the texts."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")
    whole = pa.table(made)
    kinds = pa.schema([(f.name, pa.dictionary(pa.int8(), pa.string()) if f.name == "city" else f.type)
                       for f in whole.schema])
    parts = [whole.slice(at, 60).cast(kinds).combine_chunks() for at in range(0, whole.num_rows, 60)]
    return (part.to_batches()[0] if k % 2 else part for k, part in enumerate(parts))


def arrow_reader(made):
    return arrow_table(made).to_reader(max_chunksize=50)


def arrow_dataset(made):
    arrow_table(made)
    import pyarrow.dataset

    return pyarrow.dataset.dataset(arrow_table(made))


PROGRAMS = [pandas_table, pandas_categories, polars_table, polars_categories, arrow_table,
            arrow_batch, duckdb_relation, arrow_batches, arrow_reader, arrow_dataset]


# ---------------------------------------------------------------- tables

@pytest.mark.parametrize("of", PROGRAMS)
def test_a_table_is_its_csv_file(q, tmp_path, of):
    """Values, names, categories, classes: the digest of a typed table covers all of them."""
    made = columns()
    file = csv_of(made, tmp_path / "t.csv")
    for choice in ({"label": "sick"}, {"label": "sick", "drop": "count"}, {"label": "last"},
                   {"label": "count", "task": "regress", "features": "size,city"}):
        data, same = q.Data(of(made), **choice), q.open(file, **choice)
        assert data.digest == same.digest, choice
        assert data.names == same.names and data.class_names == same.class_names
        assert data.label_name == same.label_name


@pytest.mark.parametrize("of", PROGRAMS)
def test_training_on_a_table(q, tmp_path, of):
    """The bytes of the model file are those of the same table as CSV; columns are matched by name."""
    made = columns()
    file = csv_of(made, tmp_path / "t.csv")
    table = of(made)
    model = q.train(table, label="sick", missing="mean", test=of(columns(seed=4)), **SMALL)
    assert bytes(model) == bytes(q.train(file, label="sick", missing="mean", **SMALL))
    assert model.history[-1].test.items == 200
    want = model.predict(file)
    again = of(made) if of in (arrow_batches, arrow_reader) else table  # these are read once
    assert (model.predict(again) == want).all() and set(want) == {"no", "yes"}
    turned = dict(reversed(made.items()), day=[datetime.date(2026, 1, 1)] * 200)
    if of not in (pandas_categories, polars_categories):
        assert (model.predict(of(turned)) == want).all()
    assert q.replay(model, of(made)).digest == model.digest
    with pytest.raises(q.MismatchError, match="count"):
        model.predict(of({k: v for k, v in made.items() if k != "count"}))


@pytest.mark.parametrize("of", [pandas_table, polars_table, arrow_table])
def test_bytes_beside_columns_that_a_model_does_not_have(q, of):
    """As in a file; the label is a column of the table, or an array beside it."""
    draw = np.random.default_rng(2)
    made = {name: draw.integers(0, 256, 50).tolist() for name in "ab"}
    labels = draw.integers(0, 2, 50)
    more = {"note": ["x", None] * 25, "size": draw.normal(size=50).tolist(), **made}
    words = {**SMALL, "scale": "unit", "keep": "best"}
    model = q.train(of(made), labels, valid=q.Data(of(made), labels), **words)
    for data in (q.Data(of(more), labels), (of(more), labels)):
        assert q.train(of(made), labels, valid=data, **words).digest == model.digest
    beside = q.Data(of({**more, "y": labels.tolist()}), label="y")
    assert q.train(of(made), labels, valid=beside, **words).digest == model.digest
    assert q.replay(model, beside, valid=beside).digest == model.digest
    more["a"] = [float(value) for value in made["a"]]  # its type makes floats of bytes
    with pytest.raises(q.QuernError, match="bytes"):
        q.train(of(made), labels, valid=(of(more), labels), **words)


@pytest.mark.parametrize("of", PROGRAMS)
def test_labels_beside_a_table(q, of):
    made = columns()
    labels = made.pop("sick")
    whole = q.Data(of({**made, "sick": labels}), label="sick")
    apart = q.Data(of(made), labels, label_name="sick")
    assert apart.digest == whole.digest and apart.class_names == ["no", "yes"]
    assert q.Data(of(made)).labels is None and q.Data(of(made)).names == list(made)
    with pytest.raises(q.UsageError, match="both"):
        q.Data(of(made), labels, label="count")


@pytest.mark.parametrize("of", [pandas_table, polars_table, arrow_table])
@pytest.mark.parametrize("column, words", [
    ([[1], [2], [3]], "lists"), ([1.0, float("inf"), 0.0], "infinite")])
def test_columns_that_cannot_be_read(q, of, column, words):
    with pytest.raises(q.InputError, match=f"(?s)(odd.*{words}|{words}.*odd)"):
        q.Data(of({"a": [1, 2, 3], "odd": column, "t": ["x", "y", "x"]}))


def test_numbers_can_be_categories(q):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"plan": [3, 1, 3], "x": [1.5, 2.5, 3.5]})
    data = q.Data(frame, [0, 1, 0], category="plan")
    assert data.values[:, 0].tolist() == [1, 0, 1] and data.categories == [["1", "3"], None]


def test_only_named_columns_can_be_chosen(q):
    values = np.ones((3, 2))
    for choice in ({"label": "a"}, {"features": "1"}, {"drop": "1"}):
        with pytest.raises(TypeError, match="only for files and tables"):
            q.Data(values, **choice)


def test_pandas_values_are_not_copied(q):
    """A table over one array of float32 or bytes, items in C order, is read in place."""
    pandas = pytest.importorskip("pandas")
    for kind in (np.float32, np.uint8):
        values = placed(np.arange(60000).reshape(-1, 30).astype(kind))
        frame = pandas.DataFrame(values, columns=[f"c{k}" for k in range(30)], copy=False)
        data = q.Data(frame)
        assert data.values.ctypes.data == values.ctypes.data and data.names == list(frame.columns)
    turned = q.Data(pandas.DataFrame(np.asfortranarray(values)))
    assert np.array_equal(turned.values, values) and turned.values.flags.c_contiguous


def test_pandas_types(q):
    """Numbers of every type, next to a text, are the nearest float32."""
    pandas = pytest.importorskip("pandas")
    draw = np.random.default_rng(1)
    made = {name: draw.integers(-100, 100, 50).astype(name) if name[0] != "u" else
            draw.integers(0, 200, 50).astype(name) for name in
            ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4")}
    made.update({name: draw.normal(size=50).astype(name) for name in
                 ("float16", "float32", "float64", "longdouble")})
    made["bool"] = draw.integers(0, 2, 50).astype(bool)
    frame = pandas.DataFrame(made)
    frame["mask"] = pandas.array([1, None] * 25, dtype="Int64")
    frame["object"] = np.array([1, 2.5, None, True, 3] * 10, object)
    data = q.Data(frame.assign(text="x"))
    assert data.names == [*frame.columns, "text"]
    want = frame.astype(object).where(frame.notna(), np.nan).to_numpy(np.float64)
    assert np.array_equal(data.values[:, :-1], want.astype(np.float32), equal_nan=True)


def nullable(pandas):
    """Columns of pandas's types that know missing values, and what their values are as numbers or texts."""
    kinds = [("boolean", [True, False])] + [(kind, [1, 2]) for kind in (
        "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt64", "Float32", "Float64")]
    return [*kinds, ("string[python]", ["a", "b"]), ("category", ["a", "b"])]


def arrow_backed(pandas):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")
    of = lambda kind: pandas.ArrowDtype(kind)
    numbers = [(of(kind), [1, 2]) for kind in (pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64())]
    texts = [(kind, ["a", "b"]) for kind in (
        "string[pyarrow]", of(pa.string()), of(pa.large_string()), of(pa.dictionary(pa.int32(), pa.string())))]
    cents = [decimal.Decimal("1.5"), decimal.Decimal(2)]
    return [(of(pa.bool_()), [True, False]), *numbers, *texts, (of(pa.decimal128(5, 2)), cents)]


@pytest.mark.parametrize("kinds", [nullable, arrow_backed])
def test_types_with_missing_values(q, kinds):
    pandas = pytest.importorskip("pandas")
    for kind, (first, second) in kinds(pandas):
        for given in ([first, second, first], [first, None, second]):
            column = pandas.Series(given, dtype=kind)
            numbers = not isinstance(first, str)
            wanted = [np.nan if v is None else float(v) if numbers else "ab".index(v) for v in given]
            frame = pandas.DataFrame({"x": column, "y": ["p", "q", "p"]})
            for data in q.Data(frame, label="y"), q.Data(frame[["x"]], ["p", "q", "p"]):
                np.testing.assert_array_equal(data.values[:, 0], wanted, str(kind))
                assert data.class_names == ["p", "q"]
                assert data.categories == (None if numbers else [["a", "b"]])
            if None in given:
                for read in (lambda: q.Data(frame, label="x"), lambda: q.Data([[1], [2], [3]], column)):
                    with pytest.raises(q.InputError, match="missing|finite"):
                        read()


def test_a_column_of_bool_takes_no_number_for_a_missing_value(q):
    """As that of pyarrow, whose missing values are filled by a bool alone."""
    pandas = pytest.importorskip("pandas")
    from quern import _arrow

    class Strict(pandas.Series):
        def to_numpy(self, dtype=None, copy=False, na_value=None):
            assert isinstance(na_value, bool)
            return super().to_numpy(dtype=dtype, copy=copy, na_value=na_value)

    column = _arrow.column_of(Strict([True, None, False], dtype="boolean"), "x")
    assert column.values.tolist() == [True, False, False] and column.valid.tolist() == [True, False, True]


def test_texts_of_digits_stay_texts(q):
    """A column of texts in a typed table is a category, also where they look like numbers."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"postcode": ["01", "2", "01"], "x": [1.5, 2.5, 3.5]})
    assert q.Data(frame).values[:, 0].tolist() == [0, 1, 0]
    assert q.Data(frame).categories == [["01", "2"], None]


# ---------------------------------------------------------------- weights

@pytest.mark.parametrize("of", [pandas_table, polars_table, arrow_table])
def test_a_column_of_weights(q, tmp_path, of):
    """It is read as in a CSV file, is not a feature, and is known again by its name."""
    made = columns()
    made = {"w": np.random.default_rng(9).random(200).astype(np.float32).tolist(), **made}
    file = csv_of(made, tmp_path / "t.csv")
    data = q.Data(of(made), label="sick", weight="w")
    assert data.digest == q.open(file, label="sick", weight="w").digest
    assert data.weights.tolist() == made["w"] and data.weight_name == "w"
    assert data.names == ["city", "size", "count"]
    model = q.train(of(made), label="sick", weight="w", missing="mean", test=of(made), **SMALL)
    same = q.train(file, label="sick", weight="w", missing="mean", test=file, **SMALL)
    assert bytes(model) == bytes(same) and model.report.test.loss == same.report.test.loss
    assert q.replay(model, of(made)).digest == q.replay(model, file).digest == model.digest
    assert (model.predict(of(made)) == model.predict(file)).all()
    plain = q.train(of(made), label="sick", drop="w", missing="mean", **SMALL)
    assert plain.digest != model.digest
    apart = q.Data(of({k: v for k, v in made.items() if k not in ("w", "sick")}), made["sick"],
                   weights=made["w"], label_name="sick")
    assert np.array_equal(apart.weights, data.weights) and apart.names == data.names
    both = q.Data(of({k: v for k, v in made.items() if k != "sick"}), made["sick"], weight="w")
    assert np.array_equal(both.weights, data.weights)


def test_weights_of_arrays(q):
    values, labels = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    data = q.Data(values, labels, weights=[1, 0, 2.5, 1])
    assert data.weights.tolist() == [1, 0, 2.5, 1] and q.Data(values, labels).weights is None
    assert data.digest != q.Data(values, labels).digest
    for weights, words in (([1, 2], "4 items"), ([1, -1, 1, 1], "weight"), ([0] * 4, "weight"),
                           ([1, np.nan, 1, 1], "weight"), ([1, 1e39, 1, 1], "weight")):
        with pytest.raises(q.InputError, match=words):
            q.Data(values, labels, weights=weights)
    with pytest.raises(TypeError, match="weight: only for files and tables"):
        q.Data(values, labels, weight="w")


# ---------------------------------------------------------------- DLPack

class Tensor:
    """An array of another library: it has nothing but DLPack."""

    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack__(self, **arguments):
        if self.device != (1, 0):
            raise AssertionError("the memory of a device was asked for")
        return self.values.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("kind", [np.float32, np.uint8])
def test_tensors_are_not_copied(q, kind):
    values = placed(np.arange(6000).reshape(-1, 3).astype(kind))
    labels = np.arange(2000) % 2
    data = q.Data(Tensor(values), Tensor(labels))
    assert data.values.ctypes.data == values.ctypes.data
    assert np.array_equal(data.labels, labels)
    c = q.Classifier(epochs=1).fit(Tensor(values[:50]), labels[:50])
    assert c.model_.digest == q.Classifier(epochs=1).fit(values[:50], labels[:50]).model_.digest


def test_torch(q):
    torch = pytest.importorskip("torch", reason="torch is not installed (pip install torch)")
    values = torch.from_numpy(placed(np.arange(6000, dtype=np.float32).reshape(-1, 3)))
    assert q.Data(values).values.ctypes.data == values.data_ptr()
    with pytest.raises(q.InputError, match="detach"):
        q.Data(values.requires_grad_())


def test_tensors_on_devices_are_refused(q):
    values = np.ones((4, 2), np.float32)
    with pytest.raises(q.InputError, match=r"CUDA, number 1.*\.cpu\(\)"):
        q.Data(Tensor(values, (2, 1)))
    with pytest.raises(q.InputError, match=r"y: .*ROCm"):
        q.Data(values, Tensor(np.zeros(4), (10, 0)))


# ---------------------------------------------------------------- sparse matrices

def sparse_values(items=300, features=40):
    draw = np.random.default_rng(2)
    return np.where(draw.random((items, features)) < 0.1, draw.normal(size=(items, features)), 0)


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_matrices(q, monkeypatch, form):
    scipy = pytest.importorskip("scipy.sparse")
    from quern import _arrays

    values = sparse_values()
    monkeypatch.setattr(_arrays, "_BLOCK", 4 * 40 * 7)  # several blocks, the last one shorter
    for kind in (np.float64, np.float32, np.int8):
        want = values.astype(kind).astype("<f4")
        for container in (f"{form}_matrix", f"{form}_array"):
            data = q.Data(getattr(scipy, container)(values.astype(kind)))
            assert data.digest == data_vectors.digest_of(2, 300, 40, want.tobytes(), None)
    labels = (values.sum(1) > 0).astype(int)
    made = q.train(scipy.csr_array(values), labels, **SMALL)
    assert made.digest == q.train(values.astype(np.float32), labels, **SMALL).digest


def test_values_of_one_place_are_added(q):
    """As SciPy adds them: before the sum is rounded to float32."""
    scipy = pytest.importorskip("scipy.sparse")
    given, rows, columns = [1.0, 2.0**-24, 2.0**-24, 5.0], [0, 0, 0, 1], [1, 1, 1, 0]
    for form in (scipy.coo_array((given, (rows, columns))),
                 scipy.csr_array((given, columns, [0, 3, 4]))):
        assert q.Data(form).values.tolist() == [[0, 1 + 2.0**-23], [5, 0]]


def test_a_sparse_matrix_that_is_too_large(q):
    """No memory is taken for it: 4 TB."""
    scipy = pytest.importorskip("scipy.sparse")
    large = scipy.csr_array((10**6, 10**6), dtype=np.float64)
    with pytest.raises(MemoryError, match=r"1000000 x 1000000.*3725.3 GiB.*available") as caught:
        q.Data(large)
    assert isinstance(caught.value, q.OutOfMemory) and "TruncatedSVD" in caught.value.remedy
    with pytest.raises(MemoryError):
        q.Classifier().fit(large, np.arange(10**6) % 2)


def test_the_memory_of_a_container_counts(q, monkeypatch, tmp_path):
    from quern import _arrays

    (tmp_path / "limit").write_text("123456\n")
    (tmp_path / "none").write_text("max\n")
    assert _arrays.available_memory() > 123456
    for paths, most in (((tmp_path / "limit", tmp_path / "none"), 123456), ((tmp_path / "none",), None)):
        monkeypatch.setattr(_arrays, "_LIMITS", paths)
        assert (_arrays.available_memory() == 123456) == (most == 123456)


# ---------------------------------------------------------------- estimators

@pytest.mark.filterwarnings("ignore:Constructing a Categorical")
@pytest.mark.parametrize("of", [pandas_table, pandas_categories, polars_table, arrow_table])
def test_an_estimator_takes_texts(q, of):
    """One-hot by the library; an unseen category is none of those that were seen."""
    made = columns()
    labels = made.pop("sick")
    c = q.Classifier(epochs=30, missing="mean").fit(of(made), labels)
    assert c.score(of(made), labels) > 0.9 and c.n_features_in_ == 3
    assert c.feature_names_in_.tolist() == ["city", "size", "count"]
    assert c.model_.names == ["city", "size", "count"] and c.model_.tensor("layer0.weight").shape == (64, 5)
    other = dict(made, city=["Paris", *made["city"][1:]])
    none = dict(made, city=[None, *made["city"][1:]])
    if of is not pandas_categories:
        assert np.array_equal(c.predict_proba(of(other)), c.predict_proba(of(none)))
    assert not np.array_equal(c.predict_proba(of(other)), c.predict_proba(of(made)))
    with pytest.raises(ValueError, match="now missing:\n- count"):
        c.predict(of({**{k: v for k, v in made.items() if k != "count"}, "total": made["count"]}))
    with pytest.raises(ValueError, match="NaN"):
        q.Classifier(epochs=1).fit(of(made), labels)
    r = q.Regressor(epochs=2, missing="zero").fit(of(made), np.arange(200.0))
    assert r.predict(of(made)).shape == (200,)


@pytest.mark.parametrize("of", [pandas_table, polars_table])
def test_partial_fit_keeps_the_categories_of_its_first_call(q, of):
    """Later parts may have fewer, others, and in another order."""
    y = ["a", "b", "a", "b"]
    first = {"c": ["u", "v", "w", "u"], "x": [1.0, 2.0, 3.0, 4.0]}
    c = q.Classifier(lr=1e-30).partial_fit(of(first), y, classes=["a", "b"])  # it learns nothing
    want = c.predict_proba(of(first))
    for texts in (["v", "u", "v", "u"], ["w", "a", "z", "u"]):
        c.partial_fit(of({"c": texts, "x": [70.0, -5.0, 0.0, 8.0]}), y)
        assert c.model_.tensor("layer0.weight").shape == (64, 4)
        assert np.array_equal(c.predict_proba(of(first)), want)


def test_an_estimator_takes_sparse_matrices(q):
    scipy = pytest.importorskip("scipy.sparse")
    values = sparse_values()
    labels = (values.sum(1) > 0).astype(int)
    c = q.Classifier(epochs=3).fit(scipy.csc_matrix(values), labels)
    dense = q.Classifier(epochs=3).fit(values, labels)
    assert c.model_.digest == dense.model_.digest
    assert np.array_equal(c.predict(scipy.coo_array(values)), dense.predict(values))


def test_a_table_of_numbers_is_an_array_for_an_estimator(q):
    """Apart from the names: the same parameters come out."""
    made = columns()
    labels = made.pop("sick")
    del made["city"]
    values = np.array([[np.nan if v is None else v for v in row] for row in zip(*made.values())])
    want = q.Classifier(epochs=3, missing="mean").fit(values, labels).predict_proba(values)
    for of in (pandas_table, polars_table, arrow_table):
        c = q.Classifier(epochs=3, missing="mean").fit(of(made), labels)
        assert np.array_equal(c.predict_proba(of(made)), want)


# ---------------------------------------------------------------- batches

def batches(values, labels, cuts):
    for a, b in zip([0, *cuts], [*cuts, len(values)]):
        yield values[a:b] if labels is None else (values[a:b], labels[a:b])


@pytest.mark.parametrize("labels", [
    None, np.arange(500) % 3, np.arange(500) % 3 - 1, np.arange(500) / 4.0,
    np.array(["b", "a", "é", "b", "c"] * 100)], ids=["none", "whole", "negative", "real", "text"])
def test_batches_are_one_table(q, labels):
    draw = np.random.default_rng(1)
    for values in (draw.normal(size=(500, 4)).astype(np.float32),
                   draw.integers(0, 256, (500, 4)).astype(np.uint8)):
        whole = q.Data(values, labels)
        for cuts in ([], [1, 2, 3], [0, 400, 400], list(range(1, 500))):
            data = q.Data.from_batches(batches(values, labels, cuts))
            assert data.digest == whole.digest and data.class_names == whole.class_names


def test_batches_with_weights(q):
    values, weights = np.arange(40.0).reshape(20, 2), np.arange(20) / 7
    labels = np.arange(20) % 2
    data = q.Data.from_batches((values[k:k + 6], labels[k:k + 6], weights[k:k + 6])
                               for k in range(0, 20, 6))
    assert data.digest == q.Data(values, labels, weights=weights).digest
    with pytest.raises(q.InputError, match="batch 1: .*weights"):
        q.Data.from_batches([(values, labels, weights), (values, labels)])


def test_batches_of_tables_and_lists(q):
    pandas = pytest.importorskip("pandas")
    values = np.random.default_rng(1).normal(size=(90, 2))
    frames = (pandas.DataFrame(values[k:k + 30], columns=["a", "b"]) for k in (0, 30, 60))
    data = q.Data.from_batches(frames)
    assert data.names == ["a", "b"] and data.digest == q.Data(values, names=["a", "b"]).digest
    data = q.Data.from_batches([([[1.0, 2.0]], ["x"]), ([[3.0, np.nan]], ["y"])], label_name="kind")
    assert data.class_names == ["x", "y"] and data.label_name == "kind"
    assert q.Data.from_batches([([[1, 2]], [1.0])], task="regress").targets.tolist() == [1.0]


def test_arrow_batches_are_released(q):
    """Memory holds few of them at a time; they must have one schema, and are read once."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")
    values = np.random.default_rng(4).normal(size=400_000)
    held = []

    def batches(size=40_000):
        for at in range(0, len(values), size):
            yield pa.record_batch({"a": pa.array(values[at:at + size].tolist()), "b": pa.array([at] * size)})
            held.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    data = q.Data(batches())
    assert data.items == len(values) and max(held) - before < values.nbytes
    assert data.digest == q.Data(list(batches())).digest == q.Data(pa.Table.from_batches(list(batches()))).digest
    stream = batches()
    read = next(stream)
    with pytest.raises(q.InputError, match="other columns"):
        q.Data(iter([read, pa.record_batch({"a": pa.array([1]), "b": pa.array([2])})]))
    with pytest.raises(q.InputError, match="batch 1"):
        q.Data(iter([read, values]))
    with pytest.raises(ZeroDivisionError):
        q.Data(read if k else 1 // k for k in (1, 0))
    reader = pa.RecordBatchReader.from_batches(read.schema, [read])
    assert q.Data(reader).items == 40_000


def test_an_exception_of_an_iterator_comes_through(q):
    class Torn(BaseException):
        pass

    torn = Torn("tape")
    for good in (0, 1, 5):
        def tape():
            for _ in range(good):
                yield np.ones((3, 2), np.float32)
            raise torn

        with pytest.raises(Torn) as caught:
            q.Data.from_batches(tape())
        assert caught.value is torn and "tape" in [f.name for f in caught.traceback]


@pytest.mark.parametrize("given, words", [
    ([], "no batches"), ([np.ones((3, 2)), np.ones((3, 4))], "batch 1: .*4 features"),
    ([(np.ones((3, 2)), [1, 2, 3]), np.ones((3, 2))], "batch 1: .*labels"),
    ([(np.ones((3, 2)), [1, 2])], "batch 0: .*2 labels for 3 items"),
    ([np.ones((3, 2)), np.full((3, 2), np.inf)], "item 3, feature 0"),
    ([np.array([["a", "b"]])], "batch 0: .*numbers"), ([np.ones(3)], "two dimensions")], ids=str)
def test_batches_that_do_not_fit(q, given, words):
    with pytest.raises(q.InputError, match=words):
        q.Data.from_batches(given)


def test_several_files(q, tmp_path):
    """Lists, folders, patterns and iterators of pathlib are one table, wherever a path is taken."""
    rows = "".join(f"{i % 2},{i * 7 % 31},{'ab'[i % 3 == 0]}\n" for i in range(90))
    (tmp_path / "whole.csv").write_text("y,size,name\n" + rows)
    folder, lines = tmp_path / "parts", rows.splitlines(keepends=True)
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.csv").write_text("y,size,name\n" + "".join(lines[30 * i:30 * i + 30]))
    paths = sorted(folder.iterdir())
    whole = q.open(tmp_path / "whole.csv").digest
    for given in (paths, tuple(map(str, paths)), folder, str(folder / "*.csv"), iter(paths[::-1])):
        assert q.open(given).digest == whole
    model = q.train(folder.glob("*.csv"), epochs=1, valid=paths[:1], test=tuple(paths[1:]))
    again = q.train(tmp_path / "whole.csv", epochs=1, valid=paths[0], test=paths[1:])
    assert model.digest == again.digest
    assert (model.predict(paths) == again.predict(tmp_path / "whole.csv")).all()
    with pytest.raises(q.InputError, match="the list of files is empty"):
        q.open([])
    values, labels = np.arange(60).reshape(12, 5), np.arange(12) % 3
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", values[4 * i:4 * i + 4])
        np.save(tmp_path / f"{i}-y.npy", labels[4 * i:4 * i + 4])
    whole = q.Data(values, labels).digest
    items, own = [tmp_path / f"{i}.npy" for i in range(3)], [str(tmp_path / f"{i}-y.npy") for i in range(3)]
    for given in (own, tuple(own), f"{tmp_path}/?-y.npy", tmp_path.glob("?-y.npy")):
        assert q.open(items, labels=given).digest == whole
    assert q.open(items[0], labels=own[0]).items == 4
    with pytest.raises(q.InputError, match="2 files of labels for 3 files of items"):
        q.open(items, labels=own[:2])
