"""A real RocketMQ for the tests: name server, broker and gRPC proxy, and its own Java client."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import attrs

from support.brokers import answers, end_process, free_ports, wait_for_start
from support.certificates import make_certificates
from support.java import SHORT_LIVED
from support.maven import java_program, resolve
from support.rocketmq_client import KEPT_HOURS, JavaClient

GROUP, VERSION = "org.apache.rocketmq", "5.4.0"
TCNATIVE = ("io.netty", "netty-tcnative-boringssl-static", "2.0.53.Final")
"""The library for this system, which the proxy's dependencies omit."""

USER, PASSWORD = "admin", "s3cr3t-word"
BROKER_NAME = "broker-a"
_AUTHENTICATION = f"{GROUP}.auth.authentication.provider"

SEGMENT = 1 << 20
"""Bytes of a file of messages; deletion removes whole files."""

MAX_OF_A_DISK = 0.9
"""A broker takes no messages on a disk that is fuller, whatever its settings."""

_BROKER = """
brokerClusterName=DefaultCluster
brokerName={name}
brokerId=0
namesrvAddr={namesrv}
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
bindAddress=127.0.0.1
listenPort={broker}
haListenPort={ha}
storePathRootDir={folder}/store
storePathCommitLog={folder}/store/commitlog
mappedFileSizeCommitLog={segment}
mappedFileSizeConsumeQueue=600000
maxIndexNum=10000
maxHashSlotNum=5000
flushDiskType=ASYNC_FLUSH
autoCreateTopicEnable=false
autoCreateSubscriptionGroup=true
diskMaxUsedSpaceRatio=95
# Or a disk that is 85 % full deletes messages that no test has read.
cleanFileForciblyEnable=false
registerNameServerPeriod=10000
cleanResourceInterval=300
fileReservedTime={kept_hours}
# Never by the clock.
deleteWhen=99
deleteFileBatchMax=1000
deleteCommitLogFilesInterval=1
authenticationEnabled=true
authenticationProvider={authentication}.DefaultAuthenticationProvider
authenticationMetadataProvider={authentication}.LocalAuthenticationMetadataProvider
initAuthenticationUser={login}
innerClientAuthenticationCredentials={inner}
"""


@attrs.define
class RocketBroker:
    """A name server, and a broker with a proxy, in a folder of their own.

    Its ports take plain text and TLS.  Everybody needs a login.  One that stands ``beside``
    another one has that one's name server, and without ``proxy`` none.  A broker also listens two
    ports below its own (``fastListenPort``).
    """

    folder: Path
    name: str = BROKER_NAME
    proxy: bool = True
    beside: RocketBroker | None = None
    _ports: list[int] = attrs.field(factory=lambda: free_ports(5, beside=-2))
    _namesrv: subprocess.Popen[bytes] | None = None
    _broker: subprocess.Popen[bytes] | None = None
    _client: JavaClient | None = None

    @property
    def name_server(self) -> str:
        return self.beside.name_server if self.beside else f"127.0.0.1:{self._ports[0]}"

    @property
    def address(self) -> str:
        """The broker's own."""
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def endpoints(self) -> str:
        """The gRPC proxy's."""
        return f"127.0.0.1:{self._ports[3]}"

    @property
    def authority(self) -> Path:
        """The certificate, as PEM, that makes TLS trusted."""
        return self.folder / "ca.pem"

    @property
    def options(self) -> dict[str, str]:
        """With which users reach it."""
        return {
            "rocketmq.namesrv.addr": self.name_server,
            "rocketmq.accessKey": USER,
            "rocketmq.secretKey": PASSWORD,
        }

    @property
    def client(self) -> JavaClient:
        """RocketMQ's own."""
        if self._client is None:
            login = USER, PASSWORD
            self._client = JavaClient.start(
                class_path(), self.name_server, self.name, self.address, login
            )
        return self._client

    def start(self) -> None:
        disk = shutil.disk_usage(self.folder)
        if disk.used > MAX_OF_A_DISK * (disk.used + disk.free):
            raise RuntimeError(f"the disk of {self.folder} is too full for RocketMQ: see TMPDIR")
        if not (self.folder / "broker.conf").exists():
            self._write_settings()
        if self._namesrv is None and self.beside is None:
            self._namesrv = self._java(
                "namesrv", "namesrv.NamesrvStartup", "-Xmx128m", "-c", "namesrv.properties"
            )
        self._broker = self._java(
            "broker",
            "proxy.ProxyStartup" if self.proxy else "broker.BrokerStartup",
            "-Xmx384m",
            "-XX:MaxDirectMemorySize=256m",
            f"-Dcom.rocketmq.proxy.configPath={self.folder}/proxy.json",
            *(
                ("-pm", "local", "-bc", "broker.conf", "-pc", "proxy.json", "-n", self.name_server)
                if self.proxy
                else ("-c", "broker.conf")
            ),
        )
        wait_for_start(self._answers, self._broker, self.folder.glob("*.log"))

    def _answers(self) -> bool:
        return (not self.proxy or answers(self.endpoints)) and self._registered()

    def _registered(self) -> bool:
        return self.name in self.client.broker_names()

    def _java(self, log: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        first = next(n for n, each in enumerate(arguments) if each.startswith(("-c", "-pm")))
        folder = self.folder
        command = [
            java_program(),
            *SHORT_LIVED,
            f"-Duser.home={folder}",
            f"-Drocketmq.home.dir={folder}",
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
            "-Dtls.server.mode=permissive",
            "-Dtls.test.mode.enable=false",
            "-Dtls.server.need.client.auth=none",
            f"-Dtls.server.certPath={folder}/server.pem",
            f"-Dtls.server.keyPath={folder}/server.key",
            *arguments[:first],
            *("-cp", class_path(), f"{GROUP}.{main}"),
            *arguments[first:],
        ]
        with (folder / f"{log}.log").open("ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)

    def _write_settings(self) -> None:
        certificates = make_certificates()
        login = {"accessKey": USER, "secretKey": PASSWORD}
        user = json.dumps({"username": USER, "password": PASSWORD})
        namesrv, broker, ha, grpc, remoting = self._ports
        texts = {
            "ca.pem": certificates.authority,
            "server.pem": certificates.server,
            "server.key": certificates.server_key,
            "namesrv.properties": f"listenPort={namesrv}\nbindAddress=127.0.0.1\n"
            f"kvConfigPath={self.folder}/kv.json\nconfigStorePath={self.folder}/namesrv.conf\n",
            "broker.conf": _BROKER.format(
                name=self.name,
                namesrv=self.name_server,
                broker=broker,
                ha=ha,
                folder=self.folder,
                segment=SEGMENT,
                kept_hours=KEPT_HOURS,
                authentication=_AUTHENTICATION,
                login=user,
                inner=json.dumps(login),
            ),
            "proxy.json": json.dumps(
                {
                    "rocketMQClusterName": "DefaultCluster",
                    "namesrvAddr": self.name_server,
                    "grpcServerPort": grpc,
                    "remotingListenPort": remoting,
                    "useEndpointPortFromRequest": True,
                    "authenticationEnabled": True,
                    "authenticationProvider": f"{_AUTHENTICATION}.DefaultAuthenticationProvider",
                    "authenticationMetadataProvider": f"{GROUP}.proxy.auth"
                    ".ProxyAuthenticationMetadataProvider",
                    "innerClientAuthenticationCredentials": json.dumps(login),
                }
            ),
        }
        for name, text in texts.items():
            (self.folder / name).write_text(text)

    def kill(self) -> None:
        """End the broker at once; :meth:`start` goes on with its data."""
        end_process(self._broker, at_once=True)
        self._broker = None

    def stop(self) -> None:
        """Everything; nothing of it is needed again."""
        if self._client is not None:
            self._client.close()
            self._client = None
        self.kill()
        end_process(self._namesrv, at_once=True)
        self._namesrv = None


def class_path() -> str:
    """The jars of everything, from the cache or Maven Central."""
    folders = [
        resolve(GROUP, "rocketmq-proxy", VERSION),
        # It runs on what the proxy needs, and names much more.
        resolve(GROUP, "rocketmq-namesrv", VERSION, transitive=False),
        resolve(GROUP, "rocketmq-controller", VERSION, transitive=False),
        resolve(*TCNATIVE, transitive=False, classifier="linux-x86_64"),
    ]
    return ":".join(f"{folder}/*" for folder in folders)
