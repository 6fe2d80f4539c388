"""Chromium without a screen, for tests of the page."""
import shutil

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None


def is_installed():
    return webdriver is not None and shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


def browser(*more):
    options = Options()
    options.binary_location = shutil.which("chromium")
    for word in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
                 "--disable-background-networking", "--disable-component-update", "--window-size=1280,900", *more):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
