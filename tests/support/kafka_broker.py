"""A Kafka broker in KRaft mode, which can be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from support.java_options import SHORT_RUN

_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_PATIENCE_SECONDS = 120
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/logs
offsets.topic.replication.factor=1
num.partitions=2
"""


class KafkaBroker:
    """One process; its topics are in a folder, and are created when they are first named."""

    def __init__(self, jars: Iterable[str], folder: Path) -> None:
        self._java = ["java", *SHORT_RUN, "-Xmx256m", "-cp", ":".join(jars)]
        self._settings = folder / "server.properties"
        port, controller = _find_free_port(), _find_free_port()
        self.address = f"127.0.0.1:{port}"
        self._settings.write_text(_SETTINGS.format(port=port, controller=controller, folder=folder))
        self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the broker, and wait until it accepts connections."""
        command = [*self._java, "kafka.Kafka", str(self._settings)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        host, _, port = self.address.partition(":")
        for _ in range(_PATIENCE_SECONDS * 10):
            assert self._process.poll() is None, "the broker ended"
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise TimeoutError("the broker accepts no connections")

    def kill(self) -> None:
        """Kill the process, as a power loss does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def send(self, topic: str, messages: Iterable[tuple[object, str]]) -> None:
        """Send messages with keys, and return when the broker has all of them."""
        lines = "".join(f"{key}|{text}\n" for key, text in messages)
        arguments = ["--bootstrap-server", self.address, "--topic", topic]
        properties = ["--property", "parse.key=true", "--property", "key.separator=|"]
        acknowledged = ["--producer-property", "acks=all", "--producer-property", "enable.idempotence=true"]
        self._run("kafka.tools.ConsoleProducer", *arguments, *properties, *acknowledged, text=lines)

    def _run(self, *command: str, text: str = "") -> None:
        subprocess.run([*self._java, *command], input=text, text=True, capture_output=True, check=True)


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
