"""Models by hub id, against a small server on this machine that speaks the hub's paths."""

import hashlib
import http.server
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from checkpoints import gguf, kinds, safetensors, table

from lmcalc import hub

RECORDED = Path(__file__).parent / "recorded" / "logits"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
needs_package = pytest.mark.skipif(not importlib.util.find_spec("huggingface_hub"), reason="needs huggingface_hub")


class Hub(http.server.BaseHTTPRequestHandler):
    """Files of server.root, as /ORG/NAME/resolve/REVISION/FILE; what was asked is in server.seen."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server = self.server
        match = re.fullmatch(r"/([\w.-]+/[\w.-]+)/resolve/([\w.-]+)/(.+)", self.path)
        asked = self.headers.get("Range")
        server.seen.append((self.command, self.path, asked, self.headers.get("Authorization")))
        listed = re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)(/revision/\w+)?", self.path)
        if listed is not None and (server.root / listed[1]).is_dir():
            files = sorted(
                str(path.relative_to(server.root / listed[1])) for path in (server.root / listed[1]).rglob("*.*")
            )
            found = {"id": listed[1], "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            return self.answer(
                200, {"Content-Type": "application/json"}, io.BytesIO(text := json.dumps(found).encode()), len(text)
            )
        if match is None or not (server.root / match[1]).is_dir():
            return self.answer(404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "no such repository"})
        if "gated" in match[1] and not self.headers.get("Authorization"):
            return self.answer(403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "ask for it"})
        if match[2] not in ("main", COMMIT):
            return self.answer(404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "no such revision"})
        path = server.root / match[1] / match[3]
        if not path.is_file():
            return self.answer(
                404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "no such file", "X-Repo-Commit": COMMIT}
            )
        size, start, stop = path.stat().st_size, 0, path.stat().st_size - 1
        found = {
            "ETag": f'"{hashlib.sha1(match[3].encode()).hexdigest()}"',
            "X-Repo-Commit": COMMIT,
            "Accept-Ranges": "bytes",
        }
        if asked is not None and server.ranges:
            first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups()
            start, stop = int(first), min(int(last), stop)
            found["Content-Range"] = f"bytes {start}-{stop}/{size}"
        with open(path, "rb") as file:
            file.seek(start)
            self.answer(206 if "Content-Range" in found else 200, found, file, stop + 1 - start)

    def answer(self, status, headers, file=None, length=0):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": length}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            while file is not None and self.command == "GET" and length > 0:
                block = file.read(min(length, 2**16))
                self.wfile.write(block)
                self.server.sent += len(block)
                length -= len(block)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    root = tmp_path / "root"
    (root / "org" / "one").mkdir(parents=True)
    shutil.copy(RECORDED / "llama" / "config.json", root / "org" / "one")
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    found.root, found.seen, found.sent, found.ranges = root, [], 0, True
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.fixture
def lmcalc(tmp_path):
    """A command with a cache of its own: (status, stdout, stderr)."""

    def run(*arguments, server=None, **environment):
        given = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING", "XDG_"))}
        given |= {
            "HF_HOME": str(tmp_path / "home"),
            "HF_ENDPOINT": "http://127.0.0.1:9",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_ETAG_TIMEOUT": "3",
            "NO_PROXY": "*",
            **environment,
        }
        if server is not None:
            given["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
        done = subprocess.run(
            [sys.executable, "-m", "lmcalc", *arguments], capture_output=True, text=True, env=given, timeout=60
        )
        return done.returncode, done.stdout, done.stderr

    return run


def refused(done, *said):
    assert done[0] == 2 and done[1] == "" and done[2].count("\n") == 1 and done[2].startswith("lmcalc: "), done
    for text in said:
        assert text in done[2]


def test_ids():
    assert hub.is_id("org/name") and hub.is_id("org/name-1.5_b@main") and hub.is_id("o/n@v1.0")
    assert hub.is_id("org/name-GGUF:x-Q4_K_M.gguf") and hub.is_id("o/n@main:Q8_0/x-00001-of-00002.gguf")
    for text in (
        "org/name:../x.gguf",
        "org/name:a/../../x.gguf",
        "org/name:/x.gguf",
        "org/name:x.bin",
        "org/name:",
        "a/b/c:x.gguf",
        "name",
        "org/name.toml",
        "./name",
        "../name",
        "a/b/c",
        "org/name.json",
        "org/",
        "/name",
        "org/na me",
        "org/x.gguf",
    ):
        assert not hub.is_id(text)


def cached(home, name="org/one"):
    """A cache as huggingface_hub lays it out."""
    folder = home / "hub" / f"models--{name.replace('/', '--')}"
    (
        (folder / "refs").mkdir(parents=True),
        (folder / "blobs").mkdir(),
        (folder / "snapshots" / COMMIT).mkdir(parents=True),
    )
    (folder / "refs" / "main").write_text(COMMIT)
    for file in ("config.json", "model.safetensors"):
        shutil.copy(RECORDED / "llama" / file, folder / "blobs" / file)
        (folder / "snapshots" / COMMIT / file).symlink_to(f"../../blobs/{file}")
    return folder


def test_the_local_cache_comes_first(lmcalc, tmp_path):
    """No network, and no package."""
    folder = cached(tmp_path / "home")
    for name in ("org/one", f"org/one@{COMMIT}", "org/one@main"):
        status, out, err = lmcalc("report", name, "-f", "json")
        assert (status, err) == (0, "") and json.loads(out)["model"]["id"] == name
    assert lmcalc("report", "org/one", HF_HUB_CACHE=str(tmp_path / "home" / "hub"), HF_HOME="/nowhere")[0] == 0
    status, out, err = lmcalc("inspect", "org/one")
    assert (status, err) == (0, "") and "every tensor is as" in out
    (folder / "refs" / "main").write_text("../../../../etc")
    refused(lmcalc("report", "org/one", HF_HUB_OFFLINE="1"), "org/one")


def test_without_network_or_package(lmcalc, tmp_path):
    refused(
        lmcalc("report", "org/two", HF_HUB_OFFLINE="1"),
        "org/two",
        "/org/two/resolve/main/config.json and give its path",
    )
    refused(lmcalc("inspect", "org/two"), "org/two", "/org/two/resolve/main/config.json")
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError")
    done = lmcalc("report", "org/two", PYTHONPATH=str(tmp_path), HF_ENDPOINT="https://huggingface.co")
    refused(done, "https://huggingface.co/org/two/resolve/main/config.json", "lmcalc[hub]")
    refused(lmcalc("report", "llama-3.1-8"), "unknown model 'llama-3.1-8'; closest: llama-3.1-8b")


@needs_package
def test_a_config_is_fetched_once(lmcalc, server):
    for _ in range(2):
        status, out, err = lmcalc("report", "org/one", "-f", "json", server=server)
        assert (status, err) == (0, "") and json.loads(out)["params"]["total"] > 0
    assert [method for method, *_ in server.seen].count("GET") == 1 and server.seen[0][
        1
    ] == "/org/one/resolve/main/config.json"
    assert lmcalc("report", "org/one", "-f", "json", HF_HUB_OFFLINE="1")[0] == 0


@needs_package
@pytest.mark.parametrize("ranges", [True, False])
def test_only_headers_are_fetched(ranges, lmcalc, server, tmp_path):
    """A gigabyte of tensors, of which a few kilobytes are sent; a server without ranges is cut off."""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 3,
        "num_attention_heads": 32,
        "intermediate_size": 11008,
        "vocab_size": 32000,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    }
    large = {
        key: (dtype, shape)
        for key, (dtype, shape) in table(RECORDED / "llama" / "model.safetensors").items()
        if "layers.1" not in key
    }
    folder, server.ranges = server.root / "org" / "large", ranges
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    sizes = {
        "self_attn": (4096, 4096),
        "gate_proj": (11008, 4096),
        "up_proj": (11008, 4096),
        "down_proj": (4096, 11008),
        "norm": (4096,),
        "embed_tokens": (32000, 4096),
        "lm_head": (32000, 4096),
    }
    stored, where = {}, {}
    for key in large:
        for number in range(3) if "layers.0" in key else (0,):
            name = key.replace("layers.0", f"layers.{number}")
            stored[name] = "BF16", next(size for part, size in sizes.items() if part in key)
            where[name] = f"model-0000{number + 1}-of-00003.safetensors"
    for file in set(where.values()):
        safetensors(folder / file, {name: stored[name] for name in stored if where[name] == file})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    status, out, err = lmcalc("inspect", "org/large", "-f", "json", server=server)
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (
        found["differences"] == []
        and found["files"] == 3
        and found["bytes"]["total"] > 1e9
        and found["path"] == "org/large"
    )
    assert server.sent < (600_000 if ranges else 40_000_000)
    assert not list((tmp_path / "home").rglob("*.safetensors"))


@needs_package
def test_a_single_file_and_one_that_lies(lmcalc, server):
    folder = server.root / "org" / "one"
    shutil.copy(RECORDED / "llama" / "model.safetensors", folder)
    status, out, err = lmcalc("inspect", "org/one", server=server)
    assert (status, err) == (0, "") and "every tensor is as" in out
    (folder / "model.safetensors").write_bytes((2**61).to_bytes(8, "little"))
    refused(lmcalc("inspect", "org/one", server=server), "org/one/model.safetensors: a header of")
    (folder / "model.safetensors").write_bytes((2**20).to_bytes(8, "little") + b"{" * 2**18)
    refused(lmcalc("inspect", "org/one", server=server), "cut off")
    (folder / "model.safetensors").unlink()
    refused(lmcalc("inspect", "org/one", server=server), "the hub has no model.safetensors in it")


@needs_package
def test_what_the_hub_refuses(lmcalc, server):
    refused(lmcalc("report", "org/none", server=server), "the hub has no such model, or it is private")
    refused(lmcalc("report", "org/one@v9", server=server), "no such revision")
    (server.root / "org" / "empty").mkdir()
    refused(lmcalc("report", "org/empty", server=server), "the hub has no config.json in it")
    shutil.copytree(server.root / "org" / "one", server.root / "org" / "gated")
    refused(lmcalc("report", "org/gated", server=server), "HF_TOKEN")
    assert lmcalc("report", "org/gated", server=server, HF_TOKEN="hf_secret")[0] == 0
    assert any(token == "Bearer hf_secret" for *_, token in server.seen)
    (server.root / "org" / "empty" / "config.json").write_text("[1]")
    refused(lmcalc("report", "org/empty", server=server), "holds a list; allowed: an object")


# GGUF files --------------------------------------------------------------------------------------------------------

LLAMA = {"block_count": 2, "context_length": 64, "embedding_length": 4096, "feed_forward_length": 11008,
         "attention__head_count": 32, "attention__head_count_kv": 8,
         "attention__layer_norm_rms_epsilon": 1e-6}  # fmt: skip


def tensors(dtype="Q8_0", layers=(0, 1)):
    found = {"token_embd.weight": (dtype, (32000, 4096)), "output_norm.weight": ("F32", (4096,))} if 0 in layers else {}
    for number in layers:
        for name, shape in (("attn_q", (4096, 4096)), ("attn_k", (1024, 4096)), ("attn_v", (1024, 4096)),
                            ("attn_output", (4096, 4096)), ("ffn_gate", (11008, 4096)), ("ffn_up", (11008, 4096)),
                            ("ffn_down", (4096, 11008))):  # fmt: skip
            found[f"blk.{number}.{name}.weight"] = dtype, shape
        found |= {f"blk.{number}.{name}.weight": ("F32", (4096,)) for name in ("attn_norm", "ffn_norm")}
    return found


def llama(path, dtype="Q8_0", layers=(0, 1), words=100_000, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = kinds(general__architecture="llama", tokenizer__ggml__tokens=[f"token {n}" for n in range(words)])
    metadata |= kinds(**{f"llama__{key}": value for key, value in LLAMA.items()})
    return gguf(path, metadata | more, tensors(dtype, layers))


@needs_package
@pytest.mark.parametrize("ranges", [True, False])
def test_gguf_by_ranges(ranges, lmcalc, server, tmp_path):
    """Half a gigabyte of tensors behind two megabytes of words, of which a few are sent."""
    llama(server.root / "org" / "one-GGUF" / "one-Q8_0.gguf")
    server.ranges = ranges
    for name in ("org/one-GGUF", "org/one-GGUF:one-Q8_0.gguf", "org/one-GGUF@main:one-Q8_0.gguf"):
        server.sent = 0
        status, out, err = lmcalc("inspect", name, "-f", "json", server=server)
        found = json.loads(out)
        assert (status, err) == (0, "") and found["differences"] == [] and found["path"] == name
        assert found["against"]["family"] == "llama" and found["bytes"]["total"] > 4e8
        assert server.sent < (6_000_000 if ranges else 40_000_000)
        status, out, err = lmcalc("report", name, "-f", "json", server=server)
        data = json.loads(out)
        assert (status, err) == (0, "") and data["model"]["id"] == name
        assert data["weights"]["bytes"] == found["bytes"]["total"]
    assert not list((tmp_path / "home").rglob("*.gguf"))


@needs_package
def test_several_gguf_files(lmcalc, server):
    folder = server.root / "org" / "many-GGUF"
    llama(folder / "a-Q8_0.gguf", words=10), llama(folder / "a-Q4_0.gguf", "Q4_0", words=10)
    for command in ("report", "inspect"):
        refused(lmcalc(command, "org/many-GGUF", server=server), "org/many-GGUF: holds a-Q4_0.gguf, a-Q8_0.gguf")
    status, out, _ = lmcalc("inspect", "org/many-GGUF:a-Q4_0.gguf", "-f", "json", server=server)
    assert status == 0 and json.loads(out)["by_dtype"][0]["name"] == "Q4_0"
    refused(lmcalc("report", "org/many-GGUF:b.gguf", server=server), "the hub has no b.gguf in it")
    refused(lmcalc("report", "org/none:b.gguf", server=server), "no such model")
    refused(lmcalc("report", "org/two:b.gguf", HF_HUB_OFFLINE="1"), "org/two/resolve/main/b.gguf and give its path")
    (folder / "a-Q4_0.gguf").unlink()
    llama(folder / "mmproj-a-F16.gguf", words=10)
    assert lmcalc("report", "org/many-GGUF", server=server)[0] == 0


@needs_package
def test_gguf_files_in_parts(lmcalc, server):
    for number in (0, 1):
        parts = {"split.no": (2, number), "split.count": (2, 2), "split.tensors.count": (5, len(tensors()))}
        llama(
            server.root / "org" / "parts" / "Q8_0" / f"a-0000{number + 1}-of-00002.gguf",
            layers=(number,),
            words=10,
            **parts,
        )
    for name in ("org/parts", "org/parts:Q8_0/a-00002-of-00002.gguf"):
        status, out, err = lmcalc("inspect", name, "-f", "json", server=server)
        found = json.loads(out)
        assert (status, err) == (0, "") and found["differences"] == [] and found["files"] == 2
    next((server.root / "org" / "parts").rglob("a-00002*")).unlink()
    refused(lmcalc("report", "org/parts", server=server), "the hub has no Q8_0/a-00002-of-00002.gguf in it")


@needs_package
def test_a_config_beside_gguf_files(lmcalc, server):
    """report takes the config; inspect the only file with tensors."""
    folder = server.root / "org" / "both"
    llama(folder / "a.gguf", words=10)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 2}))
    status, out, _ = lmcalc("report", "org/both", "-f", "json", server=server)
    assert status == 0 and json.loads(out)["workload"]["dtypes"]["weights"] == "bf16"
    status, out, _ = lmcalc("inspect", "org/both", "-f", "json", server=server)
    assert status == 0 and json.loads(out)["kind"] == "gguf"


def test_gguf_files_in_the_cache(lmcalc, tmp_path):
    folder = cached(tmp_path / "home", "org/kept")
    for path in (folder / "snapshots" / COMMIT).iterdir():
        path.unlink()
    llama(folder / "snapshots" / COMMIT / "a-Q8_0.gguf", words=10)
    for name in ("org/kept", "org/kept:a-Q8_0.gguf"):
        status, out, err = lmcalc("report", name, "-f", "json", HF_HUB_OFFLINE="1")
        assert (status, err) == (0, "") and json.loads(out)["model"]["id"] == name
        assert lmcalc("inspect", name, HF_HUB_OFFLINE="1")[0] == 0


@needs_package
def test_gguf_files_on_the_hub_that_lie(lmcalc, server):
    path = llama(server.root / "org" / "bad" / "a.gguf", words=10)
    os.truncate(path, 5000)
    refused(lmcalc("report", "org/bad", server=server), "a.gguf")
    path.write_bytes(b"GGUF" + bytes(20))
    refused(lmcalc("report", "org/bad", server=server), "a.gguf: GGUF version 0")
    path.write_bytes(b"")
    refused(lmcalc("report", "org/bad", server=server), "a.gguf")


def test_a_card_stands_in_for_what_the_hub_does_not_give(lmcalc):
    """Where no config can be had, the id of a card's own source is that card, and the report says so."""
    status, out, _ = lmcalc("report", "meta-llama/Llama-2-7b-hf", "-f", "json", HF_HUB_OFFLINE="1")
    found = json.loads(out)
    assert status == 0 and found["params"]["total"] == 6_738_415_616
    assert "meta-llama/Llama-2-7b-hf was not read from the hub: this is the card llama-2-7b." in found["notes"]
