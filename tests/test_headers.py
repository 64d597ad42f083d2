"""Headers of checkpoints: what they say, how fast, and that nobody can lie in one."""

import json
import os
import struct
import subprocess
import sys
import time
import tracemalloc

import pytest
from checkpoints import CODES, gguf, kinds, raw, safetensors

import lmcalc
from lmcalc import cli, headers
from lmcalc.headers.gguf import MOST_KEPT, TYPES, Skipped
from lmcalc.units import BITS

MANY = {f"model.layers.{number}.mlp.up_proj.weight": ("BF16", (4096, 1024)) for number in range(1000)}


def test_safetensors(tmp_path):
    made = {"a": ("BF16", (2, 3)), "b": ("F8_E4M3", (4,)), "c": ("F4", (2, 2)), "d": ("F32", ()), "e": ("I64", (0, 3))}
    header = headers.read(safetensors(tmp_path / "x.safetensors", made, {"format": "pt"}))
    assert {name: (each.dtype, each.shape) for name, each in header.tensors.items()} == made
    assert [each.size for each in header.tensors.values()] == [12, 4, 2, 4, 0]
    assert header.metadata == {"format": "pt"} and header.config is None


def test_the_package_reads_every_type_that_we_do(tmp_path):
    from safetensors import safe_open

    path = safetensors(tmp_path / "x.safetensors", {dtype: (dtype, (8,)) for dtype in BITS})
    assert set(safe_open(path, framework="np").keys()) == set(headers.read(path).tensors)


def test_a_thousand_tensors_take_no_time(tmp_path):
    safetensors(tmp_path / "model.safetensors", MANY)
    blocks = {f"blk.{number}.ffn_up.weight": ("Q4_K", (64, 256)) for number in range(1000)}
    words = [f"token {number}" for number in range(30_000)]
    gguf(tmp_path / "x.gguf", kinds(general__architecture="llama", tokenizer__ggml__tokens=words), blocks)
    for path in (tmp_path / "model.safetensors", tmp_path / "x.gguf"):
        start = time.process_time()
        assert len(headers.read(path).tensors) == 1000
        assert time.process_time() - start < 0.2


def sharded(folder, count=3, **changes):
    """Files with an index; changes: {tensor: file} over it."""
    where = {}
    for number in range(count):
        name = f"model-{number + 1:05d}-of-{count:05d}.safetensors"
        safetensors(folder / name, {f"layers.{number}.weight": ("F16", (3, 4))})
        where[f"layers.{number}.weight"] = name
    index = {"metadata": {"total_size": 24 * count}, "weight_map": where | changes}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_hundreds_of_shards(tmp_path):
    start = time.process_time()
    header = headers.read(sharded(tmp_path, 300))
    assert len(header.tensors) == len(header.files) == 300 and time.process_time() - start < 2
    assert headers.read(tmp_path / "model.safetensors.index.json").tensors == header.tensors
    assert len(headers.read(tmp_path / "model-00002-of-00300.safetensors").tensors) == 1


def test_links_as_in_the_hub_cache(tmp_path):
    (tmp_path / "blobs").mkdir(), (tmp_path / "snapshot").mkdir()
    safetensors(tmp_path / "blobs" / "abc", {"a": ("F16", (2,))})
    (tmp_path / "snapshot" / "model.safetensors").symlink_to("../blobs/abc")
    assert list(headers.read(tmp_path / "snapshot").tensors) == ["a"]


def test_nothing_heavy_is_imported(tmp_path):
    path = safetensors(tmp_path / "model.safetensors", {"a": ("BF16", (2, 3))})
    code = f"import sys, lmcalc.cli; lmcalc.cli.main(['inspect', {str(path)!r}, '-f', 'json'])"
    code += (
        "; print([name for name in ('torch', 'numpy', 'pandas', 'sympy', 'huggingface_hub') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


# Bad safetensors ---------------------------------------------------------------------------------------------------


def row(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


BAD = {
    "offsets beyond the file": ({"a": row(offsets=(0, 16), shape=(4,))}, 8, "beyond the 8 bytes"),
    "size of 2**60": ({"a": row(shape=(2**60,), offsets=(0, 2**62))}, 8, "beyond the 8 bytes"),
    "sizes whose product is huge": ({"a": row(shape=[2**60] * 16)}, 8, "has no 8 bytes"),
    "size of 2**63": ({"a": row(shape=(2**63,))}, 8, "shape ="),
    "too many axes": ({"a": row(shape=[1] * 17)}, 8, "up to 16 sizes"),
    "negative": ({"a": row(shape=(-2,))}, 8, "sizes of at least 0"),
    "fraction": ({"a": row(shape=(2.0,))}, 8, "sizes of at least 0"),
    "true": ({"a": row(shape=(True,))}, 8, "sizes of at least 0"),
    "infinity": (b'{"a": {"dtype": "F32", "shape": [Infinity], "data_offsets": [0, 8]}}', 8, "sizes of at least 0"),
    "offsets in the wrong order": ({"a": row(offsets=(8, 0))}, 8, "data_offsets"),
    "overlapping": ({"a": row(), "b": row(offsets=(4, 12))}, 12, "b starts at byte 4 and overlaps"),
    "the same bytes twice": ({"a": row(), "b": row()}, 8, "overlaps"),
    "a hole": ({"a": row(), "b": row(offsets=(12, 20))}, 20, "leaves bytes 8 to 12"),
    "data of no tensor": ({"a": row()}, 20, "20 bytes of data, 8 of them"),
    "shape of another size": ({"a": row(shape=(3,))}, 8, "has no 8 bytes"),
    "unknown type": ({"a": row(dtype="F33")}, 8, "'F33'; allowed: BOOL"),
    "no type": ({"a": {"shape": [2], "data_offsets": [0, 8]}}, 8, "dtype"),
    "a number for a tensor": ({"a": 3}, 8, "dtype"),
    "duplicate name": (b'{"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "a": 3}', 2, "'a' occurs twice"),
    "a name with commands for the terminal": ({"\x1b[2Ja": row()}, 8, "printable"),
    "a long name": ({"a" * 2000: row()}, 8, "up to 1024"),
    "metadata of numbers": ({"__metadata__": {"a": 3}}, 0, "__metadata__"),
    "a list": (b"[1, 2]", 0, "holds a list"),
    "no JSON": (b"{", 0, "not valid JSON"),
    "not UTF-8": (b'{"\xff\xfe": 3}', 0, "not valid JSON"),
    "deep nesting": (b'{"a":' * 100_000, 0, "not valid JSON"),
    "digits without end": (b'{"a":' + b"9" * 100_000 + b"}", 0, "not valid JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_safetensors(case, tmp_path):
    head, size, said = BAD[case]
    refused(raw(tmp_path / "model.safetensors", head, size), said)


def refused(path, *said):
    """One short message that names the file, in no time and little memory, and nothing written."""
    there = sorted(os.listdir(path.parent))
    start = time.process_time()  # other processes may keep the machine busy
    tracemalloc.start()
    with pytest.raises(lmcalc.InputError) as caught:
        headers.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    message = str(caught.value)
    for text in said:
        assert text in message
    assert str(path.parent) in message and "\n" not in message and len(message) < 2200
    assert time.process_time() - start < 10 and peak < 400e6
    assert sorted(os.listdir(path.parent)) == there


@pytest.mark.parametrize("length", [0, 3, 8, 20, 60])
def test_cut_off(length, tmp_path):
    path = safetensors(tmp_path / "model.safetensors", {"a": ("F32", (5, 5))})
    os.truncate(path, length)
    refused(path, "cut off" if length != 8 else "within its header")


def test_headers_of_many_bytes(tmp_path):
    """10 MB of keys are read and refused for what they say; a header that says that it is larger is not read at all."""
    keys = json.dumps({f"key number {number:06}": {} for number in range(400_000)}).encode()
    refused(raw(tmp_path / "model.safetensors", keys, 0), "key number 000000: dtype")
    refused(raw(tmp_path / "model.safetensors", {"a" * 10_000_000: row()}, 8), "up to 1024")
    (tmp_path / "model.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    refused(tmp_path / "model.safetensors", "a header of 4,611,686,018,427,387,904 bytes")


# Bad folders -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../config.json",
        "../model.safetensors",
        "/etc/passwd",
        "/a.safetensors",
        "a/b.safetensors",
        "..\\a.safetensors",
        "model.safetensors.index.json",
        "a\n.safetensors",
        "",
    ],
)
def test_an_index_names_files_beside_it(name, tmp_path):
    refused(sharded(tmp_path, **{"a": name}), "weight_map names", "beside it")


def test_missing_and_cyclic_shards(tmp_path):
    refused(sharded(tmp_path, a="model-00009-of-00003.safetensors"), "model-00009-of-00003.safetensors: cannot be read")
    (tmp_path / "one.safetensors").symlink_to("two.safetensors")
    (tmp_path / "two.safetensors").symlink_to("one.safetensors")
    refused(sharded(tmp_path, a="one.safetensors"), "one.safetensors: cannot be read")
    os.mkfifo(tmp_path / "pipe.safetensors")
    refused(sharded(tmp_path, a="pipe.safetensors"), "not a regular file")
    (tmp_path / "zero.safetensors").symlink_to("/dev/zero")
    refused(sharded(tmp_path, a="zero.safetensors"), "not a regular file")
    safetensors(tmp_path / "again.safetensors", {"layers.0.weight": ("F16", (3, 4))})
    refused(sharded(tmp_path, a="again.safetensors"), "layers.0.weight is in")


@pytest.mark.parametrize("index", [[1], {}, {"weight_map": []}, {"weight_map": {}}, {"weight_map": {"a": 3}}])
def test_bad_index(index, tmp_path):
    sharded(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(tmp_path / "model.safetensors.index.json", "model.safetensors.index.json")


def test_folders_without_one_checkpoint(tmp_path):
    with pytest.raises(lmcalc.InputError, match="no checkpoint in it"):
        headers.read(tmp_path)
    for name in ("a.safetensors", "b.safetensors"):
        safetensors(tmp_path / name, {"a": ("F16", (1,))})
    with pytest.raises(lmcalc.InputError, match=r"2 files and no model\.safetensors\.index\.json"):
        headers.read(tmp_path)
    safetensors(tmp_path / "model.safetensors", {"c": ("F16", (1,))})
    assert list(headers.read(tmp_path).tensors) == ["c"]
    with pytest.raises(lmcalc.InputError, match="no such file or folder"):
        headers.read(tmp_path / "nothing")
    (tmp_path / "model.bin").write_text("x")
    with pytest.raises(lmcalc.InputError, match=r"allowed: a folder, or a file that ends in"):
        headers.read(tmp_path / "model.bin")


# GGUF --------------------------------------------------------------------------------------------------------------

# bits of a value, as llama.cpp's quantize prints them, and as reports name them (K13, K14 of the cases: q8_0, q4_0)
BITS_PER_VALUE = {
    "Q8_0": 8.5, "Q4_0": 4.5, "Q4_1": 5.0, "Q5_0": 5.5, "Q5_1": 6.0, "Q2_K": 2.625, "Q3_K": 3.4375, "Q4_K": 4.5,
    "Q5_K": 5.5, "Q6_K": 6.5625, "Q8_K": 9.125, "IQ1_S": 1.5625, "IQ1_M": 1.75, "IQ2_XXS": 2.0625, "IQ2_XS": 2.3125,
    "IQ2_S": 2.5625, "IQ3_XXS": 3.0625, "IQ3_S": 3.4375, "IQ4_XS": 4.25, "IQ4_NL": 4.5, "TQ1_0": 1.6875,
    "TQ2_0": 2.0625, "MXFP4": 4.25, "NVFP4": 4.5, "BF16": 16, "F16": 16, "F32": 32,
}  # fmt: skip


@pytest.mark.parametrize("dtype", BITS_PER_VALUE)
def test_bits_of_ggml_types(dtype, tmp_path):
    path = gguf(tmp_path / "x.gguf", {}, {"a": (dtype, (3, 256)), "b": ("F32", (4,))})
    tensor = headers.read(path).tensors["a"]
    assert tensor.size * 8 / tensor.elements == BITS_PER_VALUE[dtype] and tensor.shape == (3, 256)


def test_types_are_those_of_the_gguf_package():
    gguf = pytest.importorskip("gguf")
    for code, (values, size) in gguf.GGML_QUANT_SIZES.items():
        assert TYPES[int(code)] == (code.name, values, size)


@pytest.mark.parametrize("order", "<>")
def test_gguf(order, tmp_path):
    metadata = kinds(general__architecture="llama", llama__block_count=3, llama__rope__freq_base=5e5) | {
        "tokens": ((8,), ["a"] * 3000),
        "few": ((8,), ["a", "bc"]),
        "numbers": ((5,), [-1, 2]),
        "many": ((0,), [1] * 2000),
        "yes": (7, True),
        "large": (10, 2**60),
    }
    path = gguf(tmp_path / "x.gguf", metadata, {"a.weight": ("Q4_K", (5, 512)), "b": ("F32", (7,))}, order)
    header = headers.read(path)
    assert {name: (each.dtype, each.shape, each.size) for name, each in header.tensors.items()} == {
        "a.weight": ("Q4_K", (5, 512), 1440), "b": ("F32", (7,), 28)
    }  # fmt: skip
    expected = {
        "tokens": Skipped(3000),
        "few": ["a", "bc"],
        "numbers": [-1, 2],
        "many": Skipped(2000),
        "yes": True,
        "large": 2**60,
    }
    assert {name: header.metadata[name] for name in expected} == expected
    assert header.metadata["llama.block_count"] == 3 and header.metadata["llama.rope.freq_base"] == 5e5


def split(folder, count=3, **changes):
    for number in range(count):
        metadata = {"split.no": (2, number), "split.count": (2, count), "split.tensors.count": (5, count)}
        metadata |= {key.replace("__", "."): value for key, value in changes.items()}
        gguf(
            folder / f"x-{number + 1:05d}-of-{count:05d}.gguf",
            metadata,
            {f"blk.{number}.attn_q.weight": ("F32", (2, 2))},
        )
    return folder / f"x-00002-of-{count:05d}.gguf"


def test_split_gguf(tmp_path):
    header = headers.read(split(tmp_path))
    assert len(header.tensors) == len(header.files) == 3 and header.tensors == headers.read(tmp_path).tensors
    refused(split(tmp_path, split__count=(2, 4)), "part 0 of 4")
    refused(split(tmp_path, split__no=(2, 0)), "part 0 of 3")
    refused(split(tmp_path, split__tensors__count=(5, 9)), "there are 3 tensors")
    split(tmp_path)
    (tmp_path / "x-00003-of-00003.gguf").unlink()
    refused(tmp_path / "x-00001-of-00003.gguf", "x-00003-of-00003.gguf: cannot be read")
    gguf(tmp_path / "y.gguf", {"split.count": (2, 3), "split.no": (2, 0)}, {})
    refused(tmp_path / "y.gguf", "part 0 of 3")


def changed(path, old, new):
    """The file with bytes replaced, once."""
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    return path


def kind(number, size):
    return struct.pack("<IQ", number, size)


def u64(number):
    return struct.pack("<Q", number)


def test_bad_gguf(tmp_path):
    def fresh(metadata=None, tensors=None, **more):
        found = {"a": ("F32", (77,)), "b": ("Q8_0", (2, 32))} if tensors is None else tensors
        return gguf(tmp_path / "x.gguf", metadata or {}, found, **more)

    half = {"a": ("F16", (2, 32))}
    refused(fresh(version=1), "version 1")
    refused(fresh(version=4), "version 4")
    refused(changed(fresh(), b"GGUF", b"GGML"), "no GGUF file")
    refused(fresh(n_tensors=2**60), "tensors; allowed")
    refused(fresh(n_tensors=2**17), "do not fit")
    refused(fresh(n_values=2**60), "metadata values; allowed")
    refused(fresh(n_values=2**15), "do not fit")
    refused(changed(fresh(), u64(77), u64(2**60)), "cut off or its header lies")
    refused(changed(fresh(), u64(1) + b"a", u64(2**60) + b"a"), "a name of")
    refused(changed(fresh(), u64(1) + b"b", u64(1) + b"a"), "x.gguf: a: occurs twice")
    refused(
        changed(fresh(tensors={"a": ("Q8_0", (2, 32))}), u64(32) + u64(2), u64(31) + u64(2)), "needs a multiple of 32"
    )
    refused(changed(fresh(tensors=half), u64(2) + kind(1, 0), u64(2) + kind(99, 0)), "type 99")
    refused(changed(fresh(tensors=half), u64(2) + kind(1, 0), u64(2) + kind(1, 7)), "multiple of 32")
    refused(changed(fresh(tensors=half), kind(2, 32), kind(5, 32)), "5 axes")
    refused(changed(fresh(), kind(CODES["Q8_0"][0], 320), kind(CODES["Q8_0"][0], 32)), "overlap")
    refused(fresh({"general.alignment": (4, 7)}), "general.alignment = 7")
    refused(changed(fresh({"key": (4, 7), "kez": (4, 8)}), b"kez", b"key"), "'key' occurs twice")
    refused(changed(fresh({"key": (4, 7)}), b"key" + struct.pack("<I", 4), b"key" + struct.pack("<I", 13)), "kind 13")
    refused(changed(fresh({"key": ((4,), [7])}), kind(4, 1), kind(9, 1)), "array of kind 9")
    refused(changed(fresh({"key": ((8,), ["word"])}), kind(8, 1), kind(8, 2**40)), "texts; allowed")
    refused(changed(fresh({"key": (8, "word")}), u64(4) + b"word", u64(2**50) + b"word"), "characters; allowed")
    for length in (2, 10, 30, 60, 100):
        os.truncate(fresh(), length)
        refused(tmp_path / "x.gguf", "" if length == 100 else "cut off" if length < 24 else "x.gguf")


def test_a_gguf_header_that_never_ends(tmp_path):
    """A hole of 16 GB that says it is one list of empty words."""
    path = gguf(tmp_path / "x.gguf", {"key": ((8,), ["word"])}, {})
    changed(path, kind(8, 1) + u64(4) + b"word", kind(8, 2**30) + u64(0))
    os.truncate(path, 2**34)
    refused(path, "1,073,741,824 texts; allowed")


def test_lists_without_end_are_not_kept(tmp_path):
    """Of each list a thousand entries, of all together some ten thousand: the others only say how many they have."""
    metadata = {f"key{number}": ((8,), ["ab"] * 1000) for number in range(200)}
    metadata |= {f"number{number}": ((0,), [7] * 1000) for number in range(200)}
    path = gguf(tmp_path / "x.gguf", metadata | {"last": ((4,), [1, 2])}, {"a": ("F32", (2,))})
    found = headers.read(path)
    kept = [value for value in found.metadata.values() if isinstance(value, list)]
    assert sum(map(len, kept)) <= MOST_KEPT and len(kept) == MOST_KEPT // 1000
    assert found.metadata["key0"] == ["ab"] * 1000 and found.metadata["last"] == Skipped(2)
    assert found.metadata["number199"] == Skipped(1000) and list(found.tensors) == ["a"]


ODD_TABLES = {
    "a scalar": (),
    "no rows": (0, 256),
    "one axis": (320,),
    "four axes": (1, 1, 320, 256),
    "no columns": (320, 0),
}


@pytest.mark.parametrize("shape", ODD_TABLES.values(), ids=ODD_TABLES)
def test_odd_tables_of_tokens(shape, tmp_path, capsys):
    """A model of them, or one line; never more."""
    keys = {"block_count": 1, "embedding_length": 256, "feed_forward_length": 512, "attention__head_count": 4}
    metadata = kinds(general__architecture="llama", **{f"llama__{key}": value for key, value in keys.items()})
    path = gguf(tmp_path / "x.gguf", metadata, {"token_embd.weight": ("F32", shape)})
    status = cli.main(["report", str(path)])
    out, err = capsys.readouterr()
    assert (status == 0 and err == "") or (status == 2 and out == "" and err.count("\n") == 1 and "x.gguf" in err)
    assert cli.main(["inspect", str(path)]) in (0, 1)


def test_links_that_lead_astray(tmp_path, capsys):
    """Devices, pipes, circles and folders under the names of a checkpoint's files."""
    safetensors(tmp_path / "model.safetensors", {"a": ("F32", (2,))})
    for target in ("/dev/zero", "config.json", "/proc/self/mem", str(tmp_path), "/dev/stdin"):
        (tmp_path / "config.json").symlink_to(target)
        assert cli.main(["report", str(tmp_path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert cli.main(["inspect", str(tmp_path)]) in (0, 1)  # the tensors are there
        capsys.readouterr()
        (tmp_path / "config.json").unlink()
    for target in ("/dev/zero", "model.safetensors", "/proc/self/mem", str(tmp_path)):
        (tmp_path / "model.safetensors").unlink()
        (tmp_path / "model.safetensors").symlink_to(target)
        assert cli.main(["inspect", str(tmp_path)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and "model.safetensors" in err


def test_folders_with_the_names_of_files(tmp_path, capsys):
    for name in ("x.gguf", "x.safetensors", "x.safetensors.index.json"):
        (tmp_path / name).mkdir()
        for command in ("report", "inspect"):
            assert cli.main([command, str(tmp_path / name)]) == 2
            out, err = capsys.readouterr()
            assert out == "" and err.count("\n") == 1 and name in err


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch, capsys):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refuse)
    for command in ("report", "inspect"):
        assert cli.main([command, str(tmp_path)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and "cannot be read: Permission denied" in err
