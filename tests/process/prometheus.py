"""A real Prometheus that scrapes a page, with the alert rules of this tree."""
import json
import os
import signal
import subprocess
import urllib.parse
import urllib.request

from pool import ROOT, free_port

RULES = os.path.join(ROOT, "deploy/prometheus/alerts.yml")


class Prometheus:
    def __init__(self, base, url, rules=RULES, access=None):
        """`access`: of a page for other hosts, the directory with its token and certificate."""
        self.port = free_port()
        target = url.partition("://")[2].rstrip("/")
        secure = f", scheme: https, authorization: {{credentials_file: '{access}/token'}}, tls_config: {{ca_file: '{access}/certificate.pem'}}"
        self.config = config = os.path.join(base, "prometheus.yml")
        with open(config, "w") as f:
            f.write(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n"
                    f"rule_files: ['{rules}']\n"
                    f"scrape_configs: [{{job_name: dcs{secure if access else ''}, static_configs: [{{targets: ['{target}']}}]}}]\n")
        self.process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={base}/tsdb",
                                         f"--web.listen-address=127.0.0.1:{self.port}", "--query.lookback-delta=30s", "--log.level=error"])

    def scrape_nothing(self):
        text = open(self.config).read()
        with open(self.config, "w") as f:
            f.write(text[:text.index("scrape_configs")])
        self.process.send_signal(signal.SIGHUP)

    def ask(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=300) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def value(self, query):
        try:
            result = self.ask("query", query=query)["result"]
        except OSError:
            return None  # it is starting
        return float(result[0]["value"][1]) if result else None

    def firing(self):
        """Names of the alerts that fire now."""
        return {a["labels"]["alertname"] for a in self.ask("alerts")["alerts"] if a["state"] == "firing"}

    def end(self):
        self.process.terminate()
        self.process.wait()
