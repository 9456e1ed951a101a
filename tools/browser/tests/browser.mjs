// Starts Chromium with WebGPU on its software Vulkan, and opens the page in it.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = ["--no-sandbox", "--no-first-run", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const SOFTWARE = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan", "--use-vulkan=swiftshader", "--use-angle=swiftshader", "--ignore-gpu-blocklist"];
const WAIT_MS = 240_000;

export async function start() {
  const executablePath = process.env.CHROMIUM ?? PLACES.find((path) => existsSync(path));
  if (!executablePath) throw new Error("no Chromium found; tools/html installs it on Debian, or set CHROMIUM to one");
  return chromium.launch({ executablePath, args: [...FLAGS, ...SOFTWARE] });
}

/**
 * Opens the page and waits until it has measured or given up. Exceptions that nobody caught and requests to elsewhere are problems. Without
 * `gpu` the page finds a browser that has no WebGPU.
 */
export async function open(browser, url, { rounds, gpu = true }) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, deviceScaleFactor: 1 });
  const page = await context.newPage();
  if (!gpu) await page.addInitScript(() => Object.defineProperty(navigator, "gpu", { value: undefined }));
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => request.url().startsWith(url) || /^(blob|data):/.test(request.url()) || problems.push(`asked for ${request.url()}`));
  await page.goto(`${url}?rounds=${rounds}`);
  await page.waitForFunction(() => document.documentElement.dataset.state, null, { timeout: WAIT_MS });
  const state = await page.evaluate(() => document.documentElement.dataset.state);
  return { page, context, problems, state, report: await page.evaluate(() => window.report) };
}
