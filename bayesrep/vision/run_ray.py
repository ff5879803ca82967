"""Evaluation on many machines or GPUs, with Ray (extra `[ray]`), in the blocks of one machine.

Workers take chunks of images; of one that dies another takes the chunk. All see the same paths.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bayesrep.errors import ClusterError, reason
from bayesrep.parallel import joined_cluster
from bayesrep.types import Ints
from bayesrep.vision.architectures import Architecture
from bayesrep.vision.devices import Device
from bayesrep.vision.images import ImageSet
from bayesrep.vision.pixels import Preprocessing, quiet_images
from bayesrep.vision.run_local import ImageResults, Local, blocks_in_batch, weights_budget
from bayesrep.vision.timing import Crew

CHUNK_BATCHES = 4  # batches in a chunk: what a dead worker costs


class Worker(Local):
    """Engine of each Ray worker."""

    def answer(self, blocks: Sequence[Ints]) -> list[ImageResults]:
        """Answer one chunk."""
        with quiet_images():
            return list(self.through_images(blocks))


class Cluster:
    """Workers on a Ray cluster, one for each GPU, or CPU core where there is none."""

    def __init__(
        self, address: str, images: ImageSet, device: Device, workers: int | None = None
    ) -> None:
        self._joined = ExitStack()
        self._ray = ray = self._joined.enter_context(joined_cluster(address, workers))
        resources = ray.cluster_resources()
        gpus, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
        count = workers or (gpus if device.is_cuda else cpus)
        if count < 1:
            raise ClusterError("ray-cluster-without-gpu", address=address)
        threads = max(1, cpus // count) if device.is_cuda else 1
        self._options = {"num_gpus": 1 if device.is_cuda else 0, "num_cpus": threads}
        self._arguments = (ray.put(images), device, threads)
        # Workers that compute on the cores of one machine share its memory.
        self._budget = None if device.is_cuda else weights_budget(device) // count
        self._count, self._chunk = count, CHUNK_BATCHES * blocks_in_batch(device)
        self.compiles = device.compiles
        self.crew = Crew(count * threads, count, one_after_other=not device.is_cuda)
        self._loaded: Sequence[Architecture] = ()
        self._entered: tuple[Any, Sequence[str]] | None = None
        self._kept: tuple[Path, Sequence[Preprocessing]] | None = None
        self.workers: list[Any] = [self._new() for _ in range(count)]

    def load(
        self, architectures: Sequence[Architecture]
    ) -> tuple[Sequence[Architecture], dict[str, str], Sequence[Architecture]]:
        """Load on every worker what fits the first; return it, failures, and the rest."""
        try:
            loaded, refused, rest = self._ray.get(self.workers[0].load.remote(architectures))
            self._ray.get([worker.load.remote(loaded) for worker in self.workers[1:]])
        except self._ray.exceptions.RayActorError as error:
            raise ClusterError("ray-worker-died-loading", reason=reason(error)) from error
        self._loaded = loaded
        return loaded, refused, rest

    def enter(self, images: ImageSet, names: Sequence[str]) -> None:
        """Go over to other images, of which some of the loaded classifiers are asked."""
        self._entered, self._kept = (self._ray.put(images), names), None
        self._ray.get([worker.enter.remote(*self._entered) for worker in self.workers])

    def keep(self, folder: Path, preprocessings: Sequence[Preprocessing]) -> None:
        """Keep the pixels of these preprocessings in a cache folder that all workers see."""
        self._kept = folder, preprocessings
        self._ray.get([worker.keep.remote(*self._kept) for worker in self.workers])

    def through_images(self, blocks: Sequence[Ints]) -> Iterator[ImageResults]:
        """Yield what the loaded classifiers say about all blocks, in any order."""
        size = self._chunk
        chunks = [blocks[first : first + size] for first in range(0, len(blocks), size)][::-1]
        idle, busy, deaths = list(self.workers), dict[Any, tuple[Any, Any]](), 0
        while chunks or busy:
            while chunks and idle:
                worker, chunk = idle.pop(), chunks.pop()
                busy[worker.answer.remote(chunk)] = worker, chunk
            (ready, *_), _ = self._ray.wait(list(busy), num_returns=1)
            worker, chunk = busy.pop(ready)
            try:
                yield from self._ray.get(ready)
            except self._ray.exceptions.RayActorError as error:
                deaths += 1
                if deaths > 3 * self._count:
                    raise ClusterError(
                        "ray-workers-keep-dying", deaths=deaths, reason=reason(error)
                    ) from error
                chunks.append(chunk)
                self.workers.remove(worker)
                worker = self._replacement()
                self.workers.append(worker)
            idle.append(worker)

    def close(self) -> None:
        """Stop the workers, and Ray where it was started here."""
        for worker in self.workers:
            self._ray.kill(worker)
        self._joined.close()

    def _new(self) -> Any:
        worker = self._ray.remote(Worker).options(**self._options)
        return worker.remote(*self._arguments, self._budget)

    def _replacement(self) -> Any:
        worker = self._new()
        worker.load.remote(self._loaded)  # what is asked of it later waits: calls keep their order
        if self._entered is not None:
            worker.enter.remote(*self._entered)
        if self._kept is not None:
            worker.keep.remote(*self._kept)
        return worker
