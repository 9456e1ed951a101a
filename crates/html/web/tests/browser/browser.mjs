// Starts Debian's Chromium and opens reports in it.

import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function start() {
  const executablePath = process.env.CHROMIUM ?? PLACES.find((path) => existsSync(path));
  if (!executablePath) throw new Error("no Chromium found; tools/html installs it on Debian, or set CHROMIUM to one");
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Opens a report and waits until its pictures are drawn. Errors of the console and requests are collected. */
export async function open(browser, path, { dark = false, width = 1360, height = 900 } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || problems.push(`asked for ${request.url()}`));
  const begun = performance.now();
  await page.goto(pathToFileURL(path).href);
  await page.waitForFunction(() => document.documentElement.dataset.drawn, null, { timeout: 60000 });
  return { page, context, problems, ms: performance.now() - begun };
}
