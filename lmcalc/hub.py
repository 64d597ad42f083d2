"""Models by hub id, org/name: the local cache first, then the hub, through huggingface_hub where it is installed.

org/name@revision is a revision of it, org/name:FILE.gguf a file in it. A config is downloaded into the cache as that
package does it; of tensors only headers are fetched, by HTTP range, and nothing is written. HF_HOME, HF_HUB_CACHE,
HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN mean what they mean there.
"""

import os
import re

from .errors import InputError

PART = r"(?!\.\.?(/|$|:))[\w.-]{1,200}"
ID = re.compile(rf"[A-Za-z0-9][\w.-]{{0,95}}/[\w.-]{{1,96}}(@[\w.-]{{1,100}})?(:({PART}/){{0,9}}{PART}\.gguf)?")
FIRST = 2**17  # bytes of the first range: most headers are shorter
TIMEOUT = 20


def is_id(text):
    """Whether a text looks like org/name, org/name@revision or org/name:FILE.gguf, and not like a path or file."""
    repository = text.partition(":")[0]
    return bool(ID.fullmatch(text)) and not repository.endswith((".toml", ".json", ".gguf", ".safetensors"))


def load(model, changes=None):
    """The Model of a hub id: of its config.json, or of the .gguf file that is named, or the only one there."""
    from . import huggingface
    from .headers import gguf_models

    settings = _config(model)
    if settings is not None:
        return huggingface.load(settings, changes).replace(name=model)
    return gguf_models.model(_gguf(model), changes).replace(name=model)


def _config(model):
    """The path of the config.json of a hub id, or None where a .gguf file has to say it all."""
    if ":" in model or (_cached(model, "config.json") is None and _in_cache(model)):
        return None
    try:
        return _file(model, "config.json")
    except _Missing as missing:
        if not _listed(model):
            raise missing from None
        return None


def _gguf(model):
    """The Header of a .gguf file on the hub: the one that is named, or the only one."""
    from .headers import gguf
    from .headers.source import File

    repository, _, name = model.partition(":")
    name = name or gguf.chosen(_in_cache(model) or _listed(model), model)

    def source(file):
        cached = _cached(repository, file)
        return Remote(repository, file) if cached is None else File(cached)

    return gguf.read(name, source).replace(path=model)


def _in_cache(model):
    """The names of the .gguf files of a hub id in the local cache."""
    folder = _snapshot(model)
    if folder is None or not os.path.isdir(folder):
        return []
    paths = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".gguf"))
    return [os.path.relpath(path, folder).replace(os.sep, "/") for path in paths]


def _listed(model):
    """The names of the .gguf files of a hub id, as the hub lists them; none where it does not."""
    hub, (repository, revision) = _package(model, "config.json"), _parts(model)
    try:
        found = hub.HfApi().model_info(repository, revision=revision, timeout=TIMEOUT).siblings or ()
    except Exception:  # what was asked for before it is missing, and the message says so
        return []
    return [each.rfilename for each in found if is_id(f"a/b:{each.rfilename}")]


def header(model):
    """The Header of a hub id: of the cache where it has the files, else fetched by ranges."""
    from .headers import read, safetensors

    settings = _config(model)
    if settings is None:
        return _gguf(model)
    folder = os.path.dirname(settings)
    try:
        return read(folder).replace(path=model)
    except InputError:  # the cache has no tensors, or not all
        pass
    names = None
    try:
        _file(model, safetensors.INDEX)
    except InputError as missing:
        if not _is_missing(missing):
            raise
        names = [safetensors.SINGLE]
        if _missing(model, safetensors.SINGLE) and _listed(model):
            return _gguf(model)

    def source(name):
        if name == safetensors.INDEX:
            from .headers.source import File

            return File(_file(model, name))
        return Remote(model, name)

    return safetensors.read(model, source, names, settings)


def _file(model, name):
    """The path of a file in the cache, downloaded if need be."""
    cached = _cached(model, name)
    if cached is not None:
        return cached
    hub, (repository, revision) = _package(model, name), _parts(model)
    try:
        # asked once before: a download tries an address that nobody answers for 10 seconds
        hub.utils.get_session().head(hub.hf_hub_url(repository, name, revision=revision), timeout=TIMEOUT)
        return hub.hf_hub_download(repository, name, revision=revision)
    except Exception as error:  # of several libraries, and all of them mean the same here
        raise _refused(model, name, error) from None


def _missing(model, name):
    """Whether the hub has no such file."""
    try:
        with Remote(model, name):
            return False
    except _Missing:
        return True


def _cached(model, name):
    """The path of a file in the local cache, or None."""
    folder = _snapshot(model)
    path = None if folder is None else os.path.join(folder, *name.split("/"))
    return path if path is not None and os.path.isfile(path) else None


def _snapshot(model):
    """The folder of a hub id in the local cache (models--org--name/snapshots/REVISION/), or None."""
    repository, revision = _parts(model)
    folder = os.path.join(_cache(), "models--" + repository.replace("/", "--"))
    reference = os.path.join(folder, "refs", revision or "main")
    try:
        with open(reference, encoding="ascii") as file:
            revision = file.read(200).strip()
    except (OSError, ValueError):
        pass
    if revision is None or not re.fullmatch(r"[\w-][\w.-]*", revision):
        return None
    return os.path.join(folder, "snapshots", revision)


def _cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    home = os.environ.get("HF_HOME") or os.path.join(home, "huggingface")
    found = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return os.path.expanduser(os.path.expandvars(found))


def _parts(model):
    repository, _, revision = model.partition(":")[0].partition("@")
    return repository, revision or None


def _package(model, name):
    try:
        import huggingface_hub
        from huggingface_hub import utils
    except ImportError:
        raise Unread(f"{model}: {_advice(model, name)} (or install lmcalc[hub], which fetches it)") from None
    utils.logging.set_verbosity_error()  # its warnings say what our one message says
    utils.disable_progress_bars()
    return huggingface_hub


def _advice(model, name):
    repository, revision = _parts(model)
    end = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    url = f"{end}/{repository}/resolve/{revision or 'main'}/{name}"
    return f"no such file or card, and not in the local cache of hub models; download {url} and give its path"


class Unread(InputError):
    """The hub was not reached, or gives nothing."""


class _Missing(InputError):
    """The hub has no such file."""


def _is_missing(error):
    return isinstance(error, _Missing)


def _refused(model, name, error):
    """Our error for one of huggingface_hub's."""
    kind = type(error).__name__
    if kind == "EntryNotFoundError" or kind == "RemoteEntryNotFoundError":
        return _Missing(f"{model}: the hub has no {name} in it")
    if kind == "RepositoryNotFoundError":
        return Unread(f"{model}: the hub has no such model, or it is private (HF_TOKEN is a token for it)")
    if kind == "RevisionNotFoundError":
        return Unread(f"{model}: the hub has no such revision of it")
    if kind == "GatedRepoError":
        return Unread(f"{model}: access to it has to be asked for on the hub (HF_TOKEN is a token for it)")
    offline = kind in ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
    why = "the hub cannot be reached" if offline else f"{kind}: {str(error).splitlines()[0] if str(error) else ''}"
    return Unread(f"{model}: {why}; {_advice(model, name)}")


class Remote:
    """A file on the hub, read by HTTP ranges; as headers.source.File."""

    def __init__(self, model, name):
        hub, (repository, revision) = _package(model, name), _parts(model)
        self.name, self._model, self._file = f"{model}/{name}", model, name
        self._url = hub.hf_hub_url(repository, name, revision=revision)
        self._headers, self.size = hub.utils.build_hf_headers(), None
        self._start, self._data = self._range(0, FIRST)

    def _range(self, start, count):
        """(start, bytes) of a range; a server that sends all is cut off behind it."""
        from huggingface_hub.utils import get_session, hf_raise_for_status

        asked = {**self._headers, "Range": f"bytes={start}-{start + count - 1}"}
        try:
            with get_session().stream(
                "GET", self._url, headers=asked, timeout=TIMEOUT, follow_redirects=True
            ) as response:
                hf_raise_for_status(response)
                ranged = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
                if response.status_code == 206 and ranged is not None:
                    first, self.size = int(ranged[1]), int(ranged[2])
                else:
                    first, self.size = 0, int(response.headers.get("Content-Length", 0))
                data = b""
                for block in response.iter_bytes(2**16):
                    data += block
                    if len(data) >= start + count - first:
                        break
        except Exception as error:
            raise _refused(self._model, self._file, error) from None
        return start, data[start - first : start - first + count]

    def read(self, start, count):
        """Exactly so many bytes from there on."""
        at = start - self._start
        if not (0 <= at and at + count <= len(self._data)):
            if start + count > self.size:
                raise InputError(
                    f"{self.name}: ends after {self.size:,} bytes, {start + count:,} are needed: it is cut off"
                )
            self._start, self._data = self._range(start, count)
            at = 0
        found = self._data[at : at + count]
        if len(found) != count:
            raise InputError(f"{self.name}: the hub sent {len(found):,} bytes of {count:,}")
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._data = b""
