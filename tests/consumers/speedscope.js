// Loads files into speedscope in a headless Chromium, and prints what it then shows and holds, as JSON.
//
//   node speedscope.js MODULES CHROMIUM RELEASE FILE…
//
// MODULES is the folder of npm packages (playwright-core), RELEASE speedscope's own pages; they are served from loopback.
// For each file: the title, the rows of the sandwich view's table, and the file that speedscope exports of all profiles.

const fs = require("fs");
const http = require("http");
const path = require("path");

const [modules, executablePath, release, ...files] = process.argv.slice(2);
const { chromium } = require(path.join(modules, "playwright-core"));

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

const serve = (request, response) => {
    const asked = decodeURIComponent(new URL(request.url, "http://x").pathname);
    const file = asked.startsWith("/files/") ? files[Number(asked.split("/")[2])] : path.join(release, asked === "/" ? "index.html" : asked);
    try {
        const body = fs.readFileSync(file);
        response.writeHead(200, { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream" });
        response.end(body);
    } catch {
        response.writeHead(404);
        response.end();
    }
};

// Rows of the visible table: total, self, name.
const rows = () =>
    [...document.querySelectorAll("tr")]
        .map((row) => [...row.children].map((cell) => cell.innerText.trim()))
        .filter((cells) => cells.length === 3 && cells[0].includes("("));

const main = async () => {
    const server = http.createServer(serve);
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    const origin = `http://127.0.0.1:${server.address().port}`;
    const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"];
    args.push("--disable-background-networking", "--disable-component-update", "--disable-sync");
    const browser = await chromium.launch({ executablePath, args });
    const found = [];
    for (const [number, file] of files.entries()) {
        const page = await browser.newPage({ viewport: { width: 1600, height: 2000 } });
        const errors = [];
        page.on("pageerror", (error) => errors.push(error.message));
        const name = path.basename(file);
        await page.goto(`${origin}/#profileURL=${encodeURIComponent(`${origin}/files/${number}/${name}`)}`);
        await page.waitForFunction(() => document.title.endsWith(" - speedscope"), null, { timeout: 60_000 });
        await page.keyboard.press("3");
        await page.waitForFunction(() => document.body.innerText.includes("Symbol Name"), null, { timeout: 60_000 });
        const table = await page.evaluate(rows);
        const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Control+s")]);
        const exported = JSON.parse(fs.readFileSync(await download.path(), "utf8"));
        found.push({ title: await page.title(), table, exported, errors });
        await page.close();
    }
    await browser.close();
    server.close();
    console.log(JSON.stringify(found));
};

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
