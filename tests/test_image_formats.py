"""GIF, WebP, TIFF and BMP beside JPEG and PNG: what Pillow reads, or what the parts of a file mean. The
orientation of Exif, formats that are not read, and files that are not images (docs/images.md)."""

import io
import json
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from image_files import bits_of, bmp, bmp_rows, exif, gif, riff, rle8, tiff, with_app1
from test_pictures import digest, folder, packed, photograph, png, some_files, tar, zip_of


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


def pillow(content, mode="RGB"):
    image = Image.open(io.BytesIO(content))
    image.load()
    return np.asarray(ImageOps.exif_transpose(image).convert(mode))


def same(tmp_path, info, cases, channels):
    """One folder with all files. Where it differs, each is asked for by itself, to name it."""
    files = {f"{i:03} {name}": content for i, (name, (content, _)) in enumerate(cases.items())}
    told = info(folder(tmp_path / "all", files), "--unlabelled")
    assert told["channels"] == channels
    if told["digest"] == digest([wanted for _, wanted in cases.values()], None):
        return
    for i, (name, (content, wanted)) in enumerate(cases.items()):
        one = info(folder(tmp_path / str(i), {"x": content}), "--unlabelled")["digest"]
        assert one == digest([wanted], None), name
    pytest.fail("each file by itself is right, and all together are not")


# ---------------------------------------------------------------- the formats

PALETTE = [(int(17 * k % 256), int(5 * k % 256), int(255 - k)) for k in range(256)]
GREYS = [(k, k, k) for k in range(256)]


def colours(indices, palette):
    return np.array(palette, np.uint8)[indices]


def test_bmp(tmp_path, info):
    draw = np.random.default_rng(1)
    rgb, wide = photograph(2), draw.integers(0, 65536, (21, 30))
    index = {b: draw.integers(0, 1 << b, (21, 30)) for b in (1, 2, 4, 8)}
    plain = {b: bmp_rows(bits_of(index[b], b)) for b in index}
    flat = bmp_rows(rgb[..., ::-1].reshape(21, 90))
    four = np.dstack([rgb[..., ::-1], photograph(3, channels=1)])

    def nearest(value, bits):
        return ((510 * value + (1 << bits) - 1) // (2 * ((1 << bits) - 1))).astype(np.uint8)

    def fields(r, g, b):  # each: its lowest bit, its bits
        return np.dstack([nearest(wide >> at & (1 << n) - 1, n) for at, n in (r, g, b)])

    def masks(*parts):
        return b"".join(struct.pack("<I", ((1 << n) - 1) << at) for at, n in parts)

    little = bmp_rows([r.astype("<u2").tobytes() for r in wide])
    deep = draw.integers(0, 1 << 30, (21, 30))
    tens = [r.astype("<u4").tobytes() for r in deep]
    runs = np.repeat(draw.integers(0, 256, (21, 10)), 3, axis=1)
    runs[:, 12:20] = draw.integers(0, 256, (21, 8))
    cases = {f"{b} bits": (bmp(30, 21, b, plain[b], PALETTE[:1 << b]), colours(index[b], PALETTE))
             for b in index}
    cases |= {
        "24": (bmp(30, 21, 24, flat), rgb),
        "down": (bmp(30, 21, 24, bmp_rows(rgb[..., ::-1].reshape(21, 90), True), down=True), rgb),
        "core": (bmp(30, 21, 8, plain[8], PALETTE, header=12), colours(index[8], PALETTE)),
        "core 24": (bmp(30, 21, 24, flat, header=12), rgb),
        "os2": (bmp(30, 21, 4, plain[4], PALETTE[:16], header=64), colours(index[4], PALETTE)),
        "32": (bmp(30, 21, 32, bmp_rows(four.reshape(21, 120))), rgb),
        "v5": (bmp(30, 21, 32, bmp_rows(four.reshape(21, 120)), header=124), rgb),
        "few": (bmp(30, 21, 8, bmp_rows(index[4].astype(np.uint8)), PALETTE[:16], colours=16),
                colours(index[4], PALETTE)),
        "555": (bmp(30, 21, 16, little), fields((10, 5), (5, 5), (0, 5))),
        "565": (bmp(30, 21, 16, little, compression=3, masks=masks((11, 5), (5, 6), (0, 5))),
                fields((11, 5), (5, 6), (0, 5))),
        "uneven": (bmp(30, 21, 16, little, compression=3, masks=masks((0, 1), (1, 8), (9, 7)), header=56),
                   fields((0, 1), (1, 8), (9, 7))),
        "alpha": (bmp(30, 21, 16, little, compression=6, masks=masks((8, 4), (4, 4), (0, 4), (12, 4))),
                  fields((8, 4), (4, 4), (0, 4))),
        "ten bits": (bmp(30, 21, 32, bmp_rows(tens), compression=3, masks=masks((20, 10), (10, 10), (0, 10))),
                     np.dstack([deep >> at + 2 & 255 for at in (20, 10, 0)])),
        "rle8": (bmp(30, 21, 8, rle8(runs), PALETTE, compression=1), colours(runs, PALETTE)),
        "pillow": (packed(rgb, "BMP"), rgb),
        "no last filling": (bmp(30, 21, 24, flat[:-2]), rgb),
    }
    same(tmp_path, info, cases, 3)
    for name in ("1 bits", "8 bits", "24", "down", "core", "os2", "32", "v5", "few", "rle8"):
        assert np.array_equal(pillow(cases[name][0]), cases[name][1]), name
    for name in ("555", "565"):  # Pillow rounds down
        assert np.abs(pillow(cases[name][0]).astype(int) - cases[name][1]).max() <= 1, name


def test_bmp_runs(tmp_path, info):
    """Runs of 4 bits, jumps, and rows that end early: what no run covers has the first colour."""
    codes = (b"\5\x12" + b"\0\0"                    # 1 2 1 2 1, then the row ends
             + b"\0\2\2\1"                          # two to the right, one up
             + b"\0\5\x34\x56\x70\0" + b"\1\x80"    # 3 4 5 6 7 one by one, then 8
             + b"\0\0" + b"\x0a\x99" + b"\0\1")
    image = np.zeros((6, 10), int)
    image[5, :5] = 1, 2, 1, 2, 1
    image[3, 2:8] = 3, 4, 5, 6, 7, 8
    image[2] = 9
    whole = b"".join(b"\x0a\x22\0\0" for _ in range(5)) + b"\x0a\x33"  # and no end of the image
    files = {"jumps": (bmp(10, 6, 4, codes, PALETTE[:16], compression=2), colours(image, PALETTE)),
             "no end": (bmp(10, 6, 4, whole, PALETTE[:16], compression=2),
                        colours(np.repeat([[3], *[[2]] * 5], 10, axis=1), PALETTE))}
    same(tmp_path, info, files, 3)


def test_gif(tmp_path, info):
    draw = np.random.default_rng(3)
    index, small = draw.integers(0, 256, (21, 30)), draw.integers(0, 16, (9, 11))
    around = np.full((21, 30), 5)
    around[4:13, 6:17] = small
    plain = np.zeros((21, 30), int)
    plain[4:13, 6:17] = small
    other = (small, 0, 0, None, None, False)
    cases = {
        "whole": (gif((21, 30), [(index, 0, 0, None, None, False)], PALETTE), colours(index, PALETTE)),
        "laced": (gif((21, 30), [(index, 0, 0, None, None, True)], PALETTE), colours(index, PALETTE)),
        "own table": (gif((21, 30), [(index, 0, 0, PALETTE[::-1], None, True)], PALETTE),
                      colours(index, PALETTE[::-1])),
        "transparent": (gif((21, 30), [(index, 0, 0, None, 7, False)], PALETTE), colours(index, PALETTE)),
        "animated": (gif((21, 30), [(index, 0, 0, None, None, False), other, other], PALETTE),
                     colours(index, PALETTE)),
        "part": (gif((21, 30), [(small, 6, 4, None, 5, False)], PALETTE[:16]), colours(around, PALETTE)),
        "opaque part": (gif((21, 30), [(small, 6, 4, None, None, True)], PALETTE[:16], background=3),
                        colours(plain, PALETTE)),
        "small screen": (gif((2, 3), [(index, 0, 0, None, None, False)], PALETTE), colours(index, PALETTE)),
        "no screen": (gif((0, 0), [(index, 0, 0, None, None, False)], PALETTE), colours(index, PALETTE)),
        "no trailer": (gif((21, 30), [(index, 0, 0, None, None, False)], PALETTE, trailer=False),
                       colours(index, PALETTE)),
        "pillow": (packed(Image.fromarray(photograph(1)).quantize(60), "GIF"), None),
    }
    cases["pillow"] = (cases["pillow"][0], pillow(cases["pillow"][0]))
    same(tmp_path, info, cases, 3)
    for name in set(cases) - {"no screen"}:
        assert np.array_equal(pillow(cases[name][0]), cases[name][1]), name


def test_greys_in_tables(tmp_path, info):
    """GIF and BMP have no other grey: a table of greys is one channel, in any order."""
    index = np.random.default_rng(3).integers(0, 256, (21, 30))
    back = GREYS[::-1]
    cases = {"gif": (gif((21, 30), [(index, 0, 0, None, None, False)], GREYS), index),
             "gif, own": (gif((21, 30), [(index, 0, 0, back, None, False)], PALETTE), 255 - index),
             "bmp": (bmp(30, 21, 8, bmp_rows(index.astype(np.uint8)), back), 255 - index),
             "bits": (bmp(30, 21, 1, bmp_rows(bits_of(index & 1, 1)), [(0, 0, 0), (255,) * 3]), 255 * (index & 1))}
    same(tmp_path / "grey", info, cases, 1)
    colour = {name: (content, np.dstack([wanted] * 3)) for name, (content, wanted) in cases.items()}
    same(tmp_path / "colour", info, {**colour, "rgb": (packed(photograph(1)), photograph(1))}, 3)


def frame_of(webp):
    """What follows the header of a simple file: its one chunk, with its name and size."""
    return webp[12:]


def animated(height, width, frames):
    chunks = [(b"VP8X", bytes([2, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")),
              (b"ANIM", b"\xff\xff\xff\xff\0\0")]
    for (left, top, image) in frames:
        h, w = image.shape[:2]
        place = b"".join(v.to_bytes(3, "little") for v in (left // 2, top // 2, w - 1, h - 1, 100))
        chunks.append((b"ANMF", place + b"\0" + frame_of(packed(image, "WEBP", lossless=True))))
    return riff(*chunks)


def test_webp(tmp_path, info):
    rgb, part = photograph(1), photograph(2, 9, 11)
    rgba = np.dstack([rgb, photograph(3, channels=1)])
    canvas = np.zeros((21, 30, 3), np.uint8)
    canvas[4:13, 6:17] = part
    cases = {"lossy": packed(rgb, "WEBP", quality=60), "lossless": packed(rgb, "WEBP", lossless=True),
             "lossy alpha": packed(rgba, "WEBP", quality=70, exact=True),
             "alpha": packed(rgba, "WEBP", lossless=True, exact=True),
             "profile": packed(rgb, "WEBP", lossless=True, icc_profile=b"x" * 301, xmp=b"y" * 20001),
             "animated": animated(21, 30, [(0, 0, rgb), (6, 4, part)]),
             "animated part": animated(21, 30, [(6, 4, part), (0, 0, rgb)])}
    wanted = {name: pillow(content) for name, content in cases.items()}
    assert all(np.array_equal(wanted[name], rgb) for name in ("lossless", "alpha", "profile", "animated"))
    assert np.array_equal(wanted["animated part"], canvas)
    same(tmp_path, info, {name: (cases[name], wanted[name]) for name in cases}, 3)


def tiles_of(image, side, order="<"):
    height, width = image.shape[:2]
    image = np.pad(image, ((0, -height % side), (0, -width % side), *[(0, 0)] * (image.ndim - 2)))
    kind = image.dtype.newbyteorder(order)
    return [image[y:y + side, x:x + side].astype(kind).tobytes()
            for y in range(0, height, side) for x in range(0, width, side)]


def tags(image, photometric, bits=8, **more):
    height, width = image.shape[:2]
    samples = 1 if image.ndim == 2 else image.shape[2]
    return {256: width, 257: height, 258: [bits] * samples, 259: 1, 262: photometric, 277: samples,
            278: height, **{int(k[1:]): v for k, v in more.items()}}


def test_tiff(tmp_path, info):
    """Made from parts, in both byte orders and both kinds of files, and by Pillow's libtiff."""
    rgb, grey = photograph(1), photograph(2, channels=1)
    rgba = np.dstack([rgb, grey])
    wide = np.random.default_rng(4).integers(0, 65536, (21, 30, 3)).astype(np.uint16)
    strips = [rgb[y:y + 4].tobytes() for y in range(0, 21, 4)]
    index = {b: np.random.default_rng(b).integers(0, 1 << b, (21, 30)) for b in (1, 2, 4, 8)}
    cases = {}
    for order in "<>":
        for big in False, True:
            def made(*args, **more):
                return tiff(*args, order=order, big=big, **more)
            name = f"{order} {big} "
            cases |= {
                name + "rgb": (made(tags(rgb, 2), [rgb.tobytes()]), rgb),
                name + "strips": (made(tags(rgb, 2, t278=4), strips), rgb),
                name + "wide": (made(tags(wide, 2, 16), [wide.astype(order + "u2").tobytes()]), wide >> 8),
                name + "tiles": (made(tags(wide, 2, 16, t322=16, t323=16), tiles_of(wide, 16, order), tiles=True),
                                 wide >> 8),
                name + "planes": (made(tags(rgb, 2, t284=2), [rgb[..., c].tobytes() for c in range(3)]), rgb),
                name + "alpha planes": (made(tags(rgba, 2, t284=2, t338=2, t278=11),
                                             [rgba[y:y + 11, :, c].tobytes() for c in range(4) for y in (0, 11)]), rgb),
                name + "premultiplied": (made(tags(rgba, 2, t338=1), [rgba.tobytes()]), rgb),
                name + "second": (made(tags(rgb, 2, t322=16, t323=32, t284=2),
                                       [t for c in range(3) for t in uneven(rgb[..., c])], tiles=True), rgb),
            }
    for b in index:
        table = [257 * c[k] for k in range(3) for c in PALETTE[:1 << b]]
        cases[f"palette {b}"] = (tiff(tags(index[b], 3, b, t320=(3, table)), [bits_of(index[b], b).tobytes()]),
                                 colours(index[b], PALETTE))
    for how in "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "zstd", "jpeg":
        content = packed(rgb, "TIFF", compression=how, **({"quality": 80} if how == "jpeg" else {}))
        cases[how] = (content, pillow(content))
    cases["far"] = (far(tiff(tags(rgb, 2, t339=[1] * 3), [rgb.tobytes()])), rgb)
    content = packed(rgb, "TIFF", compression="tiff_lzw", tiffinfo={317: 2})
    cases["predictor"] = (content, rgb)
    pages = io.BytesIO()
    Image.fromarray(rgb).save(pages, "TIFF", save_all=True, append_images=[Image.fromarray(grey)])
    cases["pages"] = (pages.getvalue(), rgb)
    same(tmp_path, info, cases, 3)
    for name in ("< False rgb", "> False strips", "< True planes", "palette 8", "predictor"):
        assert np.array_equal(pillow(cases[name][0]), cases[name][1]), name


def far(content):
    """Of a file of one strip of colours: its directory before the pixels, and the bits and the kind of
    samples after them, where the first look at a file does not reach."""
    at, = struct.unpack("<I", content[4:8])
    count, = struct.unpack("<H", content[at:at + 2])
    made = bytearray(content[:4] + struct.pack("<I", 8) + content[at:at + 2 + 12 * count] + b"\0" * 4)
    ahead, more = len(made) - 8, 20000
    for k in range(count):
        tag, _, _, value = struct.unpack_from("<HHII", made, 10 + 12 * k)
        if tag in (258, 339, 273):
            struct.pack_into("<I", made, 18 + 12 * k, value + ahead + (0 if tag == 273 else more))
    pixels = 8 + struct.unpack_from("<I", made, 10 + 12 * [struct.unpack_from("<H", made, 10 + 12 * k)[0]
                                                          for k in range(count)].index(279) + 8)[0]
    return bytes(made + content[8:pixels] + b"\0" * more + content[pixels:at])


def uneven(plane):
    """Tiles of 16 columns and 32 rows."""
    filled = np.pad(plane, ((0, 11), (0, 2)))
    return [filled[:, x:x + 16].tobytes() for x in (0, 16)]


def test_grey_tiff(tmp_path, info):
    grey = photograph(2, channels=1)
    deep = np.random.default_rng(4).integers(0, 65536, (21, 30)).astype(np.uint16)
    cases = {"white is 0": (tiff(tags(grey, 0), [grey.tobytes()]), 255 - grey),
             "alpha": (tiff(tags(np.dstack([grey, 255 - grey]), 1, t338=2), [np.dstack([grey, 255 - grey]).tobytes()]),
                       grey),
             "deep": (tiff(tags(deep, 0, 16), [deep.tobytes()]), 255 - (deep >> 8))}
    for b in 1, 2, 4:
        index = np.random.default_rng(b).integers(0, 1 << b, (21, 30))
        cases[f"{b} bits"] = (tiff(tags(index, 1, b), [bits_of(index, b).tobytes()]), index * (255 // ((1 << b) - 1)))
    bits = Image.fromarray(grey).convert("1")
    for how in "group3", "group4", "tiff_ccitt":
        cases[how] = (packed(bits, "TIFF", compression=how), np.asarray(bits.convert("L")))
    same(tmp_path, info, cases, 1)


def test_archives_of_all_formats(tmp_path, info):
    """In a tar and a ZIP archive as in a folder; the item's name may end in anything."""
    rgb = photograph(1)
    files = {"a/1.gif": gif((21, 30), [(rgb[..., 0].astype(int), 0, 0, None, None, True)], PALETTE),
             "a/2.webp": packed(rgb, "WEBP"), "b/3.tif": packed(rgb, "TIFF"), "b/4.bmp": packed(rgb, "BMP"),
             "b/5.jpg": packed(rgb, "JPEG"), "b/6.png": packed(rgb), "b/7": packed(rgb, "WEBP")}
    wanted = digest([pillow(files[n]) for n in sorted(files)], [0, 0, 1, 1, 1, 1, 1])
    for place in folder(tmp_path / "f", files), tar(tmp_path / "a.tar", files), zip_of(tmp_path / "a.zip", files):
        assert info(place)["digest"] == wanted


# ---------------------------------------------------------------- what cannot be read

def faulty():
    rgb, index = photograph(1), np.arange(630).reshape(21, 30) % 256
    image = gif((21, 30), [(index, 0, 0, None, None, False)], PALETTE)
    flat = bmp_rows(rgb[..., ::-1].reshape(21, 90))
    runs = bmp(30, 21, 8, b"\x1f\1" + b"\0\1", PALETTE, compression=1)
    lossless, lossy = packed(rgb, "WEBP", lossless=True), packed(rgb, "WEBP")
    strip = [rgb.tobytes()]
    lying = bytearray(lossless)
    lying[21] ^= 8
    return {
        "gif cut": (image[:-300], "the GIF file is broken"),
        "gif head": (image[:700], "cut off in its head"),
        "gif table": (gif((21, 30), [(index, 0, 0, None, None, False)]), "no colour table"),
        "gif colour": (gif((21, 30), [(index, 0, 0, None, None, False)], PALETTE[:16]), "not in its table"),
        "gif nothing": (gif((21, 30), [], PALETTE), "no picture"),
        "gif huge": (gif((65535, 65535), [(index, 0, 0, None, None, False)], PALETTE), "claims a height of 65535"),
        "webp cut": (lossless[:-40], "the WebP file is broken"),
        "webp lossy cut": (lossy[:-100], "the WebP file is broken"),
        "webp head": (lossy[:20], "cut off in its head"),
        "webp sides": (bytes(lying), "the WebP file is broken"),
        "webp canvas": (animated(21, 30, [(2, 0, rgb)]), "the WebP file is broken"),
        "bmp cut": (bmp(30, 21, 24, flat[:-10]), "it is cut off"),
        "bmp head": (bmp(30, 21, 24, flat)[:40], "cut off in its head"),
        "bmp colour": (bmp(30, 21, 8, bmp_rows(index.astype(np.uint8)), PALETTE[:100], colours=100), "not in its table"),
        "bmp run": (runs, "leaves the image"),
        "bmp jump": (bmp(30, 21, 8, b"\0\2\x1f\0\0\1", PALETTE, compression=1), "leaves the image"),
        "bmp endless": (bmp(30, 21, 8, b"\x1e\1\0\0" * 3, PALETTE, compression=1), "it is cut off"),
        "bmp png": (bmp(30, 21, 0, packed(rgb), compression=5), "compression 5"),
        "bmp mask": (bmp(30, 21, 16, flat, compression=3, masks=struct.pack("<III", 5, 2, 8)), "bit masks"),
        "bmp wide": (bmp(1 << 30, 1, 1, b"", PALETTE[:2]), "a width of 1073741824"),
        "bmp negative": (bmp(-30, 21, 24, flat), "negative width"),
        "tiff cut": (tiff(tags(rgb, 2), strip)[:-20], "cut off in its head"),
        "tiff strip": (tiff({**tags(rgb, 2), 259: 8}, [zlib.compress(strip[0])[:-200]]), "the TIFF file is broken"),
        "tiff outside": (tiff(tags(rgb, 2), strip).replace(struct.pack("<I", 8), b"\xff\xff\xff\x7f"), ""),
        "tiff huge": (tiff({**tags(rgb, 2), 256: 65535, 257: 65535}, strip), "claims a height of 65535"),
        "tiff tile": (tiff(tags(rgb, 2, t322=65520, t323=65520), strip, tiles=True), "the TIFF file is broken"),
        "tiff cmyk": (tiff(tags(np.zeros((2, 2, 4)), 5), [b"\0" * 16]), "CMYK"),
        "tiff bands": (tiff(tags(np.zeros((2, 2, 13)), 1), [b"\0" * 52]), "other samples"),
        "tiff float": (tiff(tags(np.zeros((2, 2)), 1, 32, t339=3), [b"\0" * 16]), "floating-point"),
        "tiff far float": (far(tiff(tags(rgb, 2, t339=[3] * 3), [rgb.tobytes()])), "floating-point"),
        "tiff far cut": (far(tiff(tags(rgb, 2, t339=[3] * 3), [rgb.tobytes()]))[:-20], "cut off in its head"),
        "tiff deep": (tiff(tags(np.zeros((2, 2)), 1, 32), [b"\0" * 16]), "16 bits"),
        "tiff lab": (tiff(tags(np.zeros((2, 2, 3)), 8), [b"\0" * 12]), "neither grey"),
        "tiff lzma": (tiff({**tags(rgb, 2), 259: 34925}, strip), "compression"),
        "tiff lzw": (tiff({**tags(rgb, 2), 259: 5}, [b"\x80" + b"\xff" * 50]), "the TIFF file is broken"),
    }


def test_faults(tmp_path, run_quern, info):
    """Each is named alone, and all are left out together. A library prints nothing."""
    cases = faulty()
    for name, (content, words) in cases.items():
        path = folder(tmp_path / name, {"a/1": content})
        told = run_quern("data", "info", path, status=1).stderr
        assert words in told and f"{path}/a/1" in told and "--skip-broken" in told, (name, told)
        assert told.count("\n") == 3, (name, told)
    good = {f"b/{i}": packed(photograph(i)) for i in range(2)}
    told = info(folder(tmp_path / "all", {**good, **{f"a/{k}": v[0] for k, v in cases.items()}}), "--skip-broken",
                "--resize", "5x5")
    assert told["items"] == 2 and f"{len(cases)} of {len(cases) + 2} files cannot be read" in told["note"]


OTHERS = {"HEIC images": b"\0\0\0\x18ftypheic\0\0\0\0", "AVIF images": b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif",
          "JPEG XL images": b"\xff\x0a\0", "JPEG 2000 images": b"\0\0\0\x0cjP  \r\n\x87\n",
          "Photoshop documents": b"8BPS\0\1", "SVG drawings": b"<?xml version='1.0'?>\n<!-- a -->\n<svg/>",
          "HTML pages": b"\xef\xbb\xbf <!DOCTYPE html><p>", "cameras' RAW files (Canon CR3)": b"\0\0\0\x18ftypcrx ",
          "cameras' RAW files (Canon CR2)": b"II*\0\x10\0\0\0CR\2\0",
          "pointers of Git LFS": b"version https://git-lfs.github.com/spec/v1\n",
          "videos (MP4 or MOV)": b"\0\0\0\x18ftypisom", "images of PNM (PBM, PGM, PPM or PAM)": b"P5\n2 2\n255\n",
          "PDF documents": b"%PDF-1.4", "ZIP archives": b"PK\3\4",
          "cameras' RAW files (DNG, NEF, ARW or PEF)": tiff(tags(np.zeros((2, 2, 3)), 2, t254=1), [b"\0" * 12])}


def test_formats_that_are_not_read(tmp_path, run_quern, info):
    good = {"a/0": packed(photograph(1))}
    files = {f"b/{i} {k}": OTHERS[name] for i, name in enumerate(OTHERS) for k in range(2)}
    path = folder(tmp_path / "all", {**good, **files})
    told = run_quern("data", "info", path, status=1).stderr
    assert "30 files are of formats that are not read: 2 HEIC images, 2 AVIF images" in told
    assert "b/0 0" in told and "convert them to PNG or JPEG" in told and "--skip-broken" in told
    note = info(path, "--skip-broken")["note"]
    assert "30 of 31 files cannot be read and are left out: b/0 0" in note
    assert all(f"2 {name}" in note for name in OTHERS), note
    one = folder(tmp_path / "one", {**good, "a/x.jpg": OTHERS["pointers of Git LFS"]})
    told = run_quern("data", "info", one, status=1).stderr
    assert "the file is a pointer of Git LFS, which is not read" in told and "git lfs pull" in told
    told = run_quern("data", "info", folder(tmp_path / "none", {"a/1": OTHERS["HEIC images"]}), "--skip-broken",
                     status=1).stderr
    assert "none of the 1 files is an image that can be read; there are 1 HEIC image\n" in told


# ---------------------------------------------------------------- files that are not images

CLUTTER = {"README": b"about\n", "README.md": b"# about\n", "labels.csv": b"file,label\n1,a\n", "cat/Thumbs.db": b"\xd0\xcf",
           "cat/desktop.ini": b"[x]", "dog/notes.TXT": b"BM is a word", "LICENSE": b"", "dog/index.html": b"<html>",
           "cat/.DS_Store": b"x", ".ipynb_checkpoints/a-checkpoint.png": b"x", "cat/._00.png": b"x",
           "__MACOSX/cat/._00.png": b"x", "__MACOSX/cat/00": b"x"}


def test_clutter(tmp_path, info, run_quern):
    """The same data and model as without these files; a picture of such a name is one, and a broken one is
    an error, as is what could have been a picture."""
    files = some_files()
    want = info(folder(tmp_path / "clean", files))["digest"]
    for place in (folder(tmp_path / "all", {**files, **CLUTTER}), tar(tmp_path / "a.tar", {**files, **CLUTTER}),
                  zip_of(tmp_path / "a.zip", {**files, **CLUTTER}),
                  tar(tmp_path / "b.tar", {**files, **CLUTTER}, top="photos/")):
        for options in [], ["--skip-broken"]:
            told = info(place, *options)
            assert told["digest"] == want and told["class_names"] == ["cat", "dog", "éléphant"]
            assert "9 files that are not images are left out: LICENSE, README" in told["note"].replace("photos/", "")
            assert "cannot be read" not in told["note"]
    for name, content in {"dog/x.txt": packed(photograph(1, 5, 6)), "dog/x.csv": b"GIF89a\2", "dog/x.jpg": b"text",
                          "dog/x": b"text", "dog/x.dat": b"text"}.items():
        path = folder(tmp_path / name.replace("/", " "), {**files, name: content})
        if content[1:4] == b"PNG":
            assert info(path)["items"] == len(files) + 1
        else:
            assert name in run_quern("data", "info", path, status=1).stderr
    path = folder(tmp_path / "flat", {"1.png": packed(photograph(1)), "labels.csv": b"1.png,cat\n"})
    told = info(path)
    assert told["target"] == "none" and "labels.csv" in told["note"]


# ---------------------------------------------------------------- orientation

def turned(orientation, seed=1):
    """Pixels that are 21 x 30 once they are seen."""
    return photograph(seed, *((21, 30) if orientation < 5 else (30, 21)))


def with_exif(image, kind, content):
    if kind == "JPEG":
        return with_app1(packed(image, "JPEG", quality=90), b"Exif\0\0" + content)
    if kind == "PNG":
        return png(*image.shape[1::-1], 8, 2, b"".join(b"\0" + r.tobytes() for r in image), (b"eXIf", content))
    if kind == "PNG late":
        body = png(*image.shape[1::-1], 8, 2, b"".join(b"\0" + r.tobytes() for r in image))
        chunk = b"eXIf" + content
        return body[:-12] + struct.pack(">I", len(content)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + body[-12:]
    return packed(image, "WEBP", lossless=True, exif=content)


def oriented():
    cases = {}
    for orientation in range(1, 9):
        image = turned(orientation)
        for order in "<>":
            content = exif(orientation, order)
            for kind in "JPEG", "PNG", "PNG late", "WEBP":
                cases[f"{kind} {orientation} {order}"] = with_exif(image, kind, content)
            cases[f"TIFF {orientation} {order}"] = tiff(tags(image, 2, t274=orientation), [image.tobytes()], order)
        cases[f"prefix {orientation}"] = with_exif(image, "WEBP", b"Exif\0\0" + exif(orientation))
    return cases


def test_orientation(tmp_path, info):
    """All values in all formats: as Pillow turns them."""
    cases = oriented()
    same(tmp_path, info, {name: (content, pillow(content)) for name, content in cases.items()}, 3)


def test_orientation_before_resize(tmp_path, info):
    """The sides of --resize are those of the image as it is seen."""
    for orientation in 3, 6:
        image = turned(orientation)
        path = folder(tmp_path / str(orientation), {"1": with_exif(image, "PNG", exif(orientation))})
        seen = pillow(with_exif(image, "PNG", exif(orientation)))
        plain = folder(tmp_path / f"{orientation} plain", {"1": packed(seen)})
        for how in "7x20", "short 14 crop 9x13":
            assert info(path, "--unlabelled", "--resize", how)["digest"] == \
                info(plain, "--unlabelled", "--resize", how)["digest"]


def test_exif_that_says_nothing(tmp_path, info):
    """Broken, hostile and unusual Exif data changes nothing, and is not an error."""
    image, good = photograph(1), exif(6)
    contents = {
        "empty": b"", "cut": good[:15], "value 0": exif(0), "value 9": exif(9), "long": exif(6, kind=4),
        "byte": exif(6, kind=1), "two": exif(6, count=2), "many": exif(6, count=0xFFFFFFFF), "other": exif(6, tag=0x113),
        "order": b"IM" + good[2:], "magic": good[:2] + b"\x2b" + good[3:], "outside": good[:4] + b"\xff" * 4 + good[8:],
        "itself": good[:4] + b"\0\0\0\0" + good[8:], "count": good[:8] + b"\xff\xff" + good[10:],
        "edge": good[:4] + struct.pack("<I", len(good) - 1) + good[8:], "text": b"Exif\0\0" * 3}
    cases = {}
    for kind in "JPEG", "PNG", "WEBP":
        for name, content in contents.items():
            cases[f"{kind} {name}"] = with_exif(image, kind, content)
    cases["other APP1"] = with_app1(packed(image, "JPEG"), b"http://ns.adobe.com/xap/1.0/\0")
    cases["short APP1"] = with_app1(packed(image, "JPEG"), b"Ex")
    wrong = bytearray(with_exif(image, "PNG", good))
    wrong[wrong.index(b"eXIf") + 4 + len(good)] ^= 1
    cases["check sum"] = bytes(wrong)
    cases["TIFF"] = tiff(tags(image, 2, t274=(4, 6)), [image.tobytes()])
    plain = {"J": pillow(packed(image, "JPEG", quality=90)), "o": pillow(packed(image, "JPEG"))}
    same(tmp_path, info, {name: (content, plain["J"] if name[0] == "J" else
                                 plain["o"] if "APP1" in name else image)
                          for name, content in cases.items()}, 3)


TRAIN = ["--model", "dense 2 softmax", "--epochs", "1", "--batch", "5", "--quiet"]


def recipe_of(model):
    content = model.read_bytes()
    head = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    return json.loads(head["__metadata__"]["recipe"])


def test_the_rule_of_orientation(tmp_path, run_quern):
    """It stands in the recipe where it changed something. A model without it, as every model of an older
    version is, takes images as they are stored, and a note says so."""
    def made(name, orientations, exif_of):
        return folder(tmp_path / name, {f"{'ab'[i % 2]}/{i}": exif_of(photograph(i, 9, 9), o)
                                        for i, o in enumerate(orientations * 3)})

    def tagged(image, o):
        return with_exif(image, "PNG", exif(o))

    def seen(image, o):
        return packed(pillow(tagged(image, o)))

    some, all_one = [6, 3, 1, 8], [1, 1, 1, 1]
    paths = {"tagged": made("tagged", some, tagged), "seen": made("seen", some, seen),
             "stored": made("stored", some, lambda image, o: packed(image)), "ones": made("ones", all_one, tagged)}
    for name, path in paths.items():
        run_quern("train", "--data", path, *TRAIN, "-o", tmp_path / f"{name}.m")
    recipes = {name: recipe_of(tmp_path / f"{name}.m") for name in paths}
    assert recipes["tagged"]["rules"] == "orientation" and recipes["tagged"]["contract"] == 7
    assert all("rules" not in recipes[name] for name in ("seen", "stored", "ones"))
    assert (tmp_path / "ones.m").read_bytes() == (tmp_path / "stored.m").read_bytes()

    def predicted_by(model, data):
        told = run_quern("predict", tmp_path / f"{model}.m", "--data", paths[data])
        return told.stdout, told.stderr

    for model, same_as in ("tagged", "seen"), ("stored", "stored"):
        told, said = predicted_by(model, "tagged")
        assert told == predicted_by(model, same_as)[0]
        assert ("9 images have an orientation in Exif that is not applied" in said) == (model == "stored")
    run_quern("replay", tmp_path / "tagged.m", "--data", paths["tagged"])
    run_quern("replay", tmp_path / "stored.m", "--data", paths["tagged"])  # as old recipes are replayed
    assert "data" in run_quern("replay", tmp_path / "seen.m", "--data", paths["tagged"], status=None).stderr


def test_the_rule_of_files(tmp_path, run_quern):
    """With --skip-broken older versions left out what they did not read: so does a model of theirs."""
    old = {f"{c}/{i}": packed(photograph(3 * i + ord(c), 9, 9)) for c in "ab" for i in range(4)}
    new = {"a/5": packed(photograph(50, 9, 9), "WEBP"), "b/6": packed(photograph(51, 9, 9), "BMP")}
    mixed, plain = folder(tmp_path / "mixed", {**old, **new}), folder(tmp_path / "plain", old)
    model, later = tmp_path / "old.m", tmp_path / "new.m"
    run_quern("train", "--data", plain, *TRAIN, "-o", model)
    assert "rules" not in recipe_of(model)
    told = run_quern("replay", model, "--data", mixed, "--skip-broken")
    assert "2 files of GIF, WebP, TIFF or BMP are left out" in told.stderr and "--skip-broken" in told.stderr
    assert run_quern("predict", model, "--data", mixed).stdout.count("\n") == 11
    for options in [], ["--skip-broken"]:
        run_quern("train", "--data", mixed, *options, *TRAIN, "-o", later)
        assert recipe_of(later)["rules"] == "files"
        run_quern("replay", later, "--data", mixed, *options)
    # A file beside the only top folder made that folder the one class, where broken files were left out.
    top = folder(tmp_path / "top", {f"photos/{n}": c for n, c in {**old, "README": b"x"}.items()})
    run_quern("train", "--data", top, *TRAIN, "-o", later)
    assert recipe_of(later)["rules"] == "files" and recipe_of(later)["data"] == recipe_of(model)["data"]
    assert "data" in run_quern("replay", model, "--data", top, "--skip-broken", status=None).stderr


def test_libraries(run_quern):
    told = run_quern("version").stdout
    for name in ("WebP images: libwebp 1.", "GIF images: giflib", "TIFF images: libtiff 4."):
        assert name in told
