"""Evaluation on this machine: on every core, or with cores that read and a GPU that computes.

On a CPU a thread takes a block from reading to answers, which no number of threads changes.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, Violation
from bayesrep.types import Ints
from bayesrep.vision.architectures import Architecture
from bayesrep.vision.cache import PixelCache
from bayesrep.vision.compiling import CHECKED_IMAGES, compile_networks, forget_compiled
from bayesrep.vision.devices import CPU_BATCH, Device
from bayesrep.vision.forward import TopFive, in_groups, start_evaluation, upload
from bayesrep.vision.hub import offline_without_hub
from bayesrep.vision.images import ImageSet
from bayesrep.vision.networks import Network, halve_weights, load_network
from bayesrep.vision.pixels import ImageBlock, Preprocessing, read_block
from bayesrep.vision.timing import Crew, Spent

BLOCK_IMAGES = CPU_BATCH  # images read together by one thread, and on a CPU computed together
FLUSH_RESULTS = 64  # results after which kept pixels are brought to the disk

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class ImageResults:
    """Results of some images."""

    rows: Ints  # int64 [n]: the images that could be decoded
    contents: NDArray[np.uint64]  # [n]: digests of the images
    # Answers of each classifier on these images, or the reason why it has none.
    answers: Mapping[str, TopFive | str]
    failures: tuple[tuple[int, str], ...] = ()  # images that could not be decoded, and why
    spent: Spent = Spent()  # time of the work
    # Reason why compiling was not used, by classifier it was tried for; empty where it is used.
    compiled: Mapping[str, str] = field(default_factory=dict[str, str])


def in_blocks(rows: Ints) -> list[Ints]:
    """Part images into blocks; the same however they are spread over threads and machines."""
    return [rows[first : first + BLOCK_IMAGES] for first in range(0, len(rows), BLOCK_IMAGES)]


def weights_budget(device: Device) -> int:
    """Bound the bytes of weights in memory: a third of the free memory."""
    import torch

    if device.is_cuda:
        return torch.cuda.mem_get_info(device.name)[0] // 3
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable"))
        return int(kilobytes) * 1024 // 3
    except (OSError, StopIteration):
        return 2**31  # elsewhere: two gigabytes, which any machine has


def through_images(
    images: ImageSet,
    blocks: Sequence[Ints],
    networks: Sequence[Network],
    stores: Mapping[Preprocessing, PixelCache],
    device: Device,
    workers: int,
) -> Iterator[ImageResults]:
    """Yield all networks' answers on all blocks, in order, by threads that read (and compute)."""
    # Networks with equal preprocessing share one input.
    groups = in_groups(networks)
    preprocessings = list(dict.fromkeys(key[0] for key in groups))
    decoded_for = list(dict.fromkeys([*preprocessings, *stores]))
    stop = Event()

    def read(rows: Ints) -> ImageBlock:
        return read_block(images, rows, decoded_for, stores)

    def begin(
        pixels: Mapping[Preprocessing, Any], read: Sequence[ImageBlock]
    ) -> Callable[[], ImageResults]:
        needed_groups = groups if any(len(block.rows) for block in read) else {}
        fetch = start_evaluation(pixels, needed_groups, device, images.classes, stop)

        def finish() -> ImageResults:
            answers, seconds = fetch()
            rows = np.concatenate([block.rows for block in read])
            contents = np.concatenate([block.contents for block in read])
            failures = tuple(failure for block in read for failure in block.failures)
            spent = sum((block.spent for block in read), Spent(compute=seconds))
            return ImageResults(rows, contents, answers, failures, spent)

        return finish

    def answer_block(rows: Ints) -> ImageResults:
        block = read(rows)
        return begin(upload([block], preprocessings, device), [block])()

    def answer_batches() -> ImageResults:
        begin, several = time.perf_counter(), blocks_in_batch(device)
        first = [read(rows) for rows in blocks[: max(CHECKED_IMAGES // BLOCK_IMAGES, several)]]
        batches = _gather_blocks((block for block in first if len(block.rows)), several)
        tried = compile_networks(
            groups, [upload(b, preprocessings, device) for b in batches], device
        )
        took = (time.perf_counter() - begin) * (workers if device.name == "cpu" else 1)
        nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        return ImageResults(*nothing, {}, spent=Spent(compile=took), compiled=tried)

    # Compiling is tried first, on some of the images, and judged by its answers.
    with _threads(workers, stop) as pool:
        if device.compiles and any(network.compiled is None for network in networks):
            yield answer_batches()
        # On a CPU each thread decodes and computes its own blocks.
        if device.name == "cpu":
            yield from _map_ahead(pool, answer_block, blocks, 2 * workers)
            return
        # On an accelerator threads decode ahead while the device computes batches.
        ahead = 4 * workers + blocks_in_batch(device)
        batches = _gather_blocks(_map_ahead(pool, read, blocks, ahead), blocks_in_batch(device))
        uploaded = _upload_batches(batches, preprocessings, device)
        # A batch is begun before the last is fetched, so that nothing waits in between.
        waiting: Callable[[], ImageResults] | None = None
        for pixels, batch in uploaded:
            last, waiting = waiting, begin(pixels, batch)
            if last is not None:
                yield last()
        if waiting is not None:
            yield waiting()


class Local:
    """Engine on this machine; `budget` bounds the bytes of weights in memory together."""

    def __init__(
        self, images: ImageSet, device: Device, workers: int, budget: int | None = None
    ) -> None:
        self._images, self._device, self._workers = images, device, workers
        self._budget = budget
        self._networks: list[Network] = []
        self._asked: list[Network] = []
        self._kept: dict[Preprocessing, PixelCache] = {}

    def load(
        self, architectures: Sequence[Architecture]
    ) -> tuple[Sequence[Architecture], dict[str, Violation], Sequence[Architecture]]:
        """Load what fits; return it, the reasons why some cannot be had, and the rest."""
        self._networks, self._asked = [], []  # those of the last pass go before the next come
        if self._device.compiles:
            forget_compiled()
        budget = weights_budget(self._device) if self._budget is None else self._budget
        refused: dict[str, Violation] = {}
        waiting = deque(architectures)
        with offline_without_hub(needed=any(each.needs_hub for each in architectures)):
            # Another of the largest size so far has to fit; the first always does.
            sizes: list[int] = []
            while waiting and (not sizes or sum(sizes) + max(sizes) <= budget):
                architecture = waiting.popleft()
                try:
                    network = load_network(architecture, self._device.name)
                    if self._device.is_mixed:
                        halve_weights(network, self._device.precision)
                    self._networks.append(network)
                    sizes.append(network.size)
                except PredictionError as error:
                    refused[architecture.name] = error.violation
        self._asked = self._networks
        return [network.architecture for network in self._networks], refused, list(waiting)

    def enter(self, images: ImageSet, names: Sequence[str]) -> None:
        """Go over to other images, of which some of the loaded classifiers are asked."""
        self._images, self._kept = images, {}
        self._asked = [each for each in self._networks if each.architecture.name in names]

    @property
    def compiles(self) -> bool:
        """True if networks are compiled."""
        return self._device.compiles

    @property
    def crew(self) -> Crew:
        """Who reads and who computes."""
        alone = self._device.name == "cpu"
        return Crew(self._workers, self._workers if alone else 1, one_after_other=alone)

    def keep(self, folder: Path, preprocessings: Sequence[Preprocessing]) -> None:
        """Keep the pixels of these preprocessings in a cache folder from now on."""
        digest, count = self._images.fingerprint(), len(self._images)
        self._kept = {key: PixelCache(folder, digest, count, key) for key in preprocessings}

    def through_images(self, blocks: Sequence[Ints]) -> Iterator[ImageResults]:
        """Yield what the loaded classifiers say about all blocks, in order."""
        results = through_images(
            self._images, blocks, self._asked, self._kept, self._device, self._workers
        )
        try:
            for number, each in enumerate(results, start=1):
                yield each
                if number % FLUSH_RESULTS == 0:
                    self._flush()
        finally:
            self._flush()

    def close(self) -> None:
        """Let networks and pixels go."""
        self._networks, self._asked, self._kept = [], [], {}

    def _flush(self) -> None:
        for pixels in self._kept.values():
            pixels.flush()


@contextmanager
def single_threaded() -> Generator[None]:
    """Keep torch from splitting an operation over cores that are all busy with other images."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _threads(workers: int, stop: Event) -> Generator[ThreadPoolExecutor]:
    import torch

    pool = ThreadPoolExecutor(workers, "bayesrep", initializer=lambda: torch.set_num_threads(1))
    try:
        with single_threaded():
            yield pool
    except BaseException:  # nobody waits for what is under way; it ends with its network
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _map_ahead(
    pool: ThreadPoolExecutor, task: Callable[[_Item], _Result], items: Iterable[_Item], ahead: int
) -> Iterator[_Result]:
    """Yield task(item) in order while at most `ahead` further items are under way."""
    under_way: deque[Future[_Result]] = deque()
    for item in items:
        under_way.append(pool.submit(task, item))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()


def blocks_in_batch(device: Device) -> int:
    """Return the number of blocks computed together: one on a CPU, as many as fit elsewhere."""
    return 1 if device.name == "cpu" else max(1, device.batch_size // BLOCK_IMAGES)


def _gather_blocks(blocks: Iterable[ImageBlock], count: int) -> Iterator[list[ImageBlock]]:
    """Gather blocks; by number, so that batches are the same whoever takes them."""
    iterator = iter(blocks)
    while batch := list(islice(iterator, count)):
        yield batch


def _upload_batches(
    batches: Iterable[list[ImageBlock]], preprocessings: Sequence[Preprocessing], device: Device
) -> Iterator[tuple[dict[Preprocessing, Any], list[ImageBlock]]]:
    """Yield batches on the device, the next one on its way while one is computed."""
    import torch

    stream = torch.cuda.Stream(device.name) if device.is_cuda else None

    def send(batch: list[ImageBlock]) -> tuple[dict[Preprocessing, Any], list[ImageBlock], Any]:
        if stream is None:
            return upload(batch, preprocessings, device), batch, None
        with torch.cuda.stream(stream):
            return upload(batch, preprocessings, device), batch, stream.record_event()

    with ThreadPoolExecutor(1, "bayesrep-upload") as uploader:
        for pixels, batch, ready in _map_ahead(uploader, send, batches, 1):
            if ready is not None:
                current = torch.cuda.current_stream(device.name)
                current.wait_event(ready)
                for tensor in pixels.values():
                    tensor.record_stream(current)  # not reused by the other stream too early
            yield pixels, batch
