"""Data from the Hugging Face hub, by its own client or from that client's cache."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bayesrep.errors import PredictionError, reason
from bayesrep.vision.torch_loading import load_timm

HUB_PREFIXES = ("hf-hub:", "hf_hub:")


def is_of_hub(name: str) -> bool:
    """Test whether a name is that of a repository of the hub."""
    return name.startswith(HUB_PREFIXES)


def locate_images(images: str | Path) -> Path:
    """Return the path of a data set's images, after fetching those of the hub."""
    text = str(images)
    if not is_of_hub(text):
        return Path(images)
    load_timm()  # the hub's client comes with it
    import huggingface_hub

    *name, pattern = [*text.split(":", 1)[1].split("/", 2), "", ""][:3]
    with offline_without_hub(needed=True):
        try:
            fetched = huggingface_hub.snapshot_download(
                "/".join(name), repo_type="dataset", allow_patterns=pattern or None
            )
        except Exception as error:  # the hub, the file system, a name that is not one
            raise PredictionError(
                "hub-images-cannot-be-fetched",
                images=text,
                error_type=type(error).__name__,
                reason=reason(error)[:120],
            ) from error
    return Path(fetched)


@contextmanager
def offline_without_hub(*, needed: bool) -> Generator[None]:
    """Ask the hub once whether it is there, if needed; without it, take what is cached."""
    if not needed:
        yield
        return
    import huggingface_hub
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    try:
        if not before:
            huggingface_hub.get_session().head(constants.ENDPOINT, timeout=10)
    except Exception:  # whichever client is behind it, it could not connect
        constants.HF_HUB_OFFLINE = True  # its environment variable is read at import only
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
