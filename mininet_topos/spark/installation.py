"""Where Spark and the plugin are on this machine. Neither comes with Blast's own environment."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from mininet_topos.kernel.errors import HostError

CHECKOUT = Path(__file__).resolve().parents[2]
ENVIRONMENT = CHECKOUT / ".venv-spark"
PLUGIN = CHECKOUT / "clients" / "java" / "spark" / "target" / "blast-spark-0.1.0.jar"


@dataclass(frozen=True)
class SparkInstallation:
    """Spark as pip installs it: its folder `home`, and the Python that has its package."""

    home: Path
    python: Path

    @property
    def examples(self) -> Path:
        """Spark's own examples in Python."""
        return self.home / "examples" / "src" / "main" / "python"


def find_spark(environment: Path = ENVIRONMENT) -> SparkInstallation:
    """Return the installation of Spark in a virtual environment.

    Raises `HostError` if Spark, or a Java to run it, is missing.
    """
    home = next(environment.glob("lib/python3*/site-packages/pyspark/bin/spark-class"), None)
    if home is None:
        raise HostError(f"there is no Spark in {environment}: install it with scripts/setup spark")
    if shutil.which("java") is None:
        raise HostError("there is no Java to run Spark with: install it with scripts/setup spark")
    return SparkInstallation(home.parents[1], environment.absolute() / "bin" / "python")


def find_plugin(jar: Path | None = None) -> Path:
    """Return the plugin's jar, by default the one built in this checkout.

    Raises `HostError` if there is none.
    """
    found = PLUGIN if jar is None else jar
    if not found.is_file():
        raise HostError(
            f"there is no plugin at {found}: build it with `mvn -q -f clients/java/pom.xml package -pl spark -am`, "
            "or leave it out with --without-plugin"
        )
    return found.absolute()
