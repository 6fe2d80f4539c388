"""The page in Chromium, under --full: live, by keyboard, in the dark, narrow, without JavaScript; and the figures by promtool."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

from chromium import browser, is_installed
from pool import FULL, ROOT, Pool, program, wait_for
from prometheus import RULES, Prometheus

if is_installed():
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

PICTURES = os.environ.get("DCS_PICTURES")  # a directory for screenshots
AXE = os.environ.get("DCS_AXE")            # axe.min.js of axe-core

GRAIN = """#!/bin/sh
. dcs_grain.sh
dcs_grain_handler
n=0
read -r first && n=${first:-0}
while [ $n -lt $1 ]; do
    n=$((n + 1)); sleep 1
    if dcs_grain_time_to_checkpoint; then dcs_grain_checkpoint "at $n" "$n"; fi
done
"""


def text_of(driver, panel):
    return driver.find_element(By.ID, panel).text


def prefer(driver, scheme):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})


def resize(driver, width, height):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})


def picture(driver, name, width):
    if not PICTURES:
        return
    resize(driver, width, driver.execute_script("return document.documentElement.scrollHeight"))
    time.sleep(0.3)
    driver.save_screenshot(os.path.join(PICTURES, name + ".png"))


def check_accessible(driver):
    if not AXE:
        return
    driver.execute_script(open(AXE).read())
    found = driver.execute_async_script("axe.run().then(r => arguments[0](r.violations))")
    assert not found, json.dumps([(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in found], indent=1)


def check_keyboard(driver):
    """Tab reaches the skip link first, and the focus stays on its link while panels are replaced."""
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.get_attribute("href").endswith("#main")
    link = driver.find_element(By.LINK_TEXT, "local1")
    driver.execute_script("arguments[0].focus()", link)
    before = driver.find_element(By.ID, "head").text
    wait_for("a look", lambda: driver.find_element(By.ID, "head").text != before)
    assert driver.switch_to.active_element.text == "local1"
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for("the host's page", lambda: "/host/local1" in driver.current_url)
    check_accessible(driver)
    driver.back()


def check_looks(driver):
    back = "return getComputedStyle(document.body).backgroundColor"
    colours = []
    for scheme in ("light", "dark"):
        prefer(driver, scheme)
        colours.append(driver.execute_script(back))
        check_accessible(driver)
        picture(driver, "status-page-" + scheme, 1280)
    assert colours[0] != colours[1]
    prefer(driver, "light")
    resize(driver, 390, 800)
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    driver.refresh()
    wait_for("the time line to show now", lambda: driver.execute_script(
        "const b = document.querySelector('#time .scroll'); return b && b.scrollLeft > 0 && b.scrollLeft + b.clientWidth >= b.scrollWidth - 2"))
    assert wide <= 390, f"{wide} points wide on a narrow screen"
    picture(driver, "status-page-narrow", 390)
    resize(driver, 1280, 900)


def check_without_scripts(url):
    driver = browser("--blink-settings=scriptEnabled=false")
    try:
        driver.get(url)
        assert "local1" in text_of(driver, "hosts") and "active" in text_of(driver, "head")
    finally:
        driver.quit()


def check_live(pool, driver):
    script = os.path.join(pool.base, "count.sh")
    with open(script, "w") as f:
        f.write(GRAIN)
    os.chmod(script, 0o755)
    path = dict(pool.env, PATH=os.path.dirname(program("dcs")) + ":" + pool.env["PATH"])
    quiet = {"env": path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    works = [subprocess.Popen([program("dcs"), "map", "--new", "--label", "curves", "--", script, ":::", *["600"] * 5], **quiet)]
    try:
        wait_for("the runs to appear", lambda: "5 running" in text_of(driver, "head"))
        wait_for("checkpoints", lambda: len(driver.find_elements(By.CSS_SELECTOR, "#time .checkpoint")) >= 40, timeout=600)
        works.append(subprocess.Popen([program("dcs"), "map", "--new", "--nice", "5", "--label", "segments", "--", "sleep", ":::",
                                       *["2"] * 300], **quiet))
        wait_for("the throughput", lambda: driver.find_elements(By.CSS_SELECTOR, "#load .line.ended"), timeout=300)
        pool.kill_host("local2")
        wait_for("the death of a host", lambda: "dead" in text_of(driver, "hosts"), timeout=180)
        wait_for("the departure", lambda: "host_dead" in text_of(driver, "moves"))
        wait_for("the arrow", lambda: driver.find_elements(By.CSS_SELECTOR, "#time svg .move"), timeout=180)
        check_looks(driver)
    finally:
        for work in works:
            work.terminate()
            work.wait()


def check_prometheus(pool, url):
    """It scrapes the page, answers every query of the dashboard, and a dead scheduler raises its alert."""
    prometheus = Prometheus(pool.base, url)
    try:
        wait_for("the first scrape", lambda: prometheus.value('dcs_up{job="dcs"}') == 1)
        dashboard = json.load(open(os.path.join(ROOT, "deploy/grafana/dcs.json")))
        queries = [target["expr"].replace("$job", "dcs") for panel in dashboard["panels"] for target in panel["targets"]]
        for query in queries:
            prometheus.ask("query", query=query)
        # Prometheus leaves out what this pool does not have: certificates, a copy of the store, damaged sessions.
        instant = [query for query in queries if not re.search(r"rate\(|increase\(|damaged|certificate|copy_lag", query)]
        assert all(prometheus.value(query) is not None for query in instant), [q for q in instant if prometheus.value(q) is None]
        rules = wait_for("the rules", lambda: (lambda found: found if all(r["health"] == "ok" for r in found) else None)(
            [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]))
        assert len(rules) >= 12
        pool.kill("scheduler", "scheduler")
        wait_for("the alert", lambda: {"DcsSchedulerDown"} & {a["labels"]["alertname"] for a in prometheus.ask("alerts")["alerts"]})
        pool.up()
    finally:
        prometheus.end()


def check_figures(url):
    if not shutil.which("promtool"):
        print("no promtool: the figures are not checked by it")
        return
    text = subprocess.run(["curl", "-s", url + "metrics"], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["promtool", "check", "metrics"], input=text, check=True)
    subprocess.run(["promtool", "check", "rules", RULES], check=True)


if not FULL:
    print("only under --full")
    sys.exit(77)
if not is_installed():
    print("chromium-driver or python3-selenium is not installed")
    sys.exit(77)
with Pool(servers=3, slots=2) as pool:
    pool.dcs("up", "--page", "--dir", pool.dir)
    url = pool.json("status")["page"]
    driver = browser()
    try:
        driver.get(url)
        wait_for("the page to be live", lambda: text_of(driver, "live") == "live")
        check_keyboard(driver)
        check_live(pool, driver)
        log = [line for line in driver.get_log("browser") if line["level"] == "SEVERE"]
        assert not log, log
        pool.kill("scheduler", "scheduler")
        wait_for("the page to say so", lambda: "does not answer" in text_of(driver, "head"))
        pool.up()
    finally:
        driver.quit()
    check_without_scripts(url)
    check_figures(url)
    if shutil.which("prometheus"):
        check_prometheus(pool, url)
print("the page lives in a browser")
