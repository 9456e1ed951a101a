// Serves the page that compares two models in a browser, to this machine only.
//
//     node serve.mjs ORIGINAL.onnx OURS.onnx [PORT]
//
// tools/browser/demo makes the second file and calls this.

import { createReadStream, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const PAGE = join(here, "page");
const RUNTIME = join(here, "node_modules/onnxruntime-web/dist");
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };

/** Every address there is, with its file. Nothing else is served. */
function addresses({ original, ours }) {
  const of = (folder, prefix) => readdirSync(folder).map((name) => [`${prefix}${name}`, join(folder, name)]);
  const known = new Map([...of(PAGE, "/"), ...of(RUNTIME, "/ort/")]);
  return known.set("/", join(PAGE, "index.html")).set("/original.onnx", original).set("/ours.onnx", ours);
}

/** Starts a server; gives its address and a function that ends it. Without a port the system chooses one. */
export async function serve({ original, ours, port = 0 }) {
  const known = addresses({ original, ours });
  const names = JSON.stringify({ original: basename(original), ours: basename(ours) });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const headers = (type) => ({ "content-type": type, "cache-control": "no-store" });
    if (pathname === "/models.json") return response.writeHead(200, headers(TYPES[".json"])).end(names);
    const path = known.get(pathname);
    const size = path && statSync(path, { throwIfNoEntry: false })?.size;
    if (size === undefined) return response.writeHead(404, headers("text/plain")).end("not found");
    response.writeHead(200, { ...headers(TYPES[extname(path)] ?? "application/octet-stream"), "content-length": size });
    createReadStream(path).on("error", () => response.destroy()).pipe(response);
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [original, ours, port] = process.argv.slice(2);
  if (!ours || Number.isNaN(Number(port ?? 0))) {
    console.error("usage: node serve.mjs ORIGINAL.onnx OURS.onnx [PORT]");
    process.exit(2);
  }
  try {
    const { url } = await serve({ original, ours, port: Number(port ?? 0) });
    console.log(`${url}   Ctrl-C ends it`);
  } catch ({ message }) {
    console.error(`serve.mjs: ${message}`);
    process.exitCode = 1;
  }
}
