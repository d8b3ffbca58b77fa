// Loads pages of `--format html` in headless Chromium and uses them as a reader does.
//
//   node html.mjs MODULE CHROMIUM PAGE…    MODULE: the folder of playwright-core
//
// Every page: no request, no error, nothing that a label could have smuggled in, no wider than a telephone, in light, dark and
// print. Then sorting, filtering and zooming, by mouse and by keyboard, with what must come of them.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [module, executablePath, ...pages] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(module);
const args = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const browser = await chromium.launch({ executablePath, args, headless: true });
let failed = false;

/** A page that must stay silent. */
async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  const url = pathToFileURL(path).href;
  page.on("console", (message) => trouble.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => trouble.push(`error: ${error}`));
  page.on("dialog", (dialog) => trouble.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => request.url() === url || trouble.push(`request: ${request.url()}`));
  await page.goto(url);
  return { page, context, trouble };
}

const texts = (page, column, table) =>
  page.locator(`${table} tbody tr:not([hidden])`).evaluateAll(
    (rows, column) => rows.map((row) => row.cells[column].textContent), column);

/** A number as the tables write it. */
const number = (text) => Number(text.replace(/[,+]/g, "").replace("<", ""));

async function sorting(page) {
  const table = "#phases table.sheet";
  const before = await texts(page, 0, table);
  const headings = await page.locator(`${table} thead tr:last-child th`).allTextContents();
  const column = headings.findIndex((heading) => heading.startsWith("Δ µs") || heading.startsWith("µs"));
  assert.ok(column > 0, headings.join());
  const heading = page.locator(`${table} thead tr:last-child th`).nth(column);
  await heading.locator("button").click();
  assert.equal(await heading.getAttribute("aria-sort"), "descending");
  const values = (await texts(page, column, table)).filter((text) => text !== "–").map(number);
  assert.deepEqual(values, [...values].sort((a, b) => b - a));
  // The keyboard does the same.
  await heading.locator("button").focus();
  await page.keyboard.press("Enter");
  assert.equal(await heading.getAttribute("aria-sort"), "ascending");
  await page.keyboard.press("Space");
  assert.equal(await heading.getAttribute("aria-sort"), null);
  assert.deepEqual(await texts(page, 0, table), before, "a third time brings the report's order back");
  const sums = await page.locator(`${table} tfoot tr`).allTextContents();
  assert.ok(sums.length >= 1 && sums[0].startsWith("TOTAL"), "sums stay in the foot");
  return before.length;
}

async function filtering(page, rows) {
  const input = page.locator("#phases .filter input");
  if (rows < 8) return assert.equal(await input.count(), 0);
  const [first] = await texts(page, 0, "#phases table.sheet");
  const word = first.slice(0, 12).trim();
  await input.fill(word);
  const left = await texts(page, 0, "#phases table.sheet");
  assert.ok(left.length >= 1 && left.length <= rows && left.every((text) => text.includes(word)), left.join());
  await input.fill("no phase is called this");
  assert.equal((await texts(page, 0, "#phases table.sheet")).length, 0);
  assert.equal(await page.locator("#phases .filter output").textContent(), `0 of ${rows} rows`);
  await input.fill("");
  assert.equal((await texts(page, 0, "#phases table.sheet")).length, rows);
}

async function zooming(page) {
  const drawn = () => page.locator("#timeline path").first().getAttribute("d");
  const readout = () => page.locator("#timeline output").textContent();
  const whole = await drawn();
  assert.match(await readout(), /^all: A busy [\d.]+ %/);
  await page.getByRole("button", { name: "Zoom in" }).click();
  assert.notEqual(await drawn(), whole);
  assert.match(await readout(), /^[\d.]+ ms to [\d.]+ ms: A busy/);
  await page.locator("#timeline .lanes").focus();
  const before = await readout();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await readout(), before);
  await page.keyboard.press("0");
  assert.match(await readout(), /^all:/);
  const lane = await page.locator("#timeline .lane").first().boundingBox();
  await page.mouse.move(lane.x + lane.width * 0.25, lane.y + 10);
  await page.mouse.down();
  await page.mouse.move(lane.x + lane.width * 0.5, lane.y + 10, { steps: 3 });
  await page.mouse.up();
  const { length_ns: length } = JSON.parse(await page.locator("#trace-attr-timeline").textContent());
  const [from, to] = (await readout()).match(/[\d.]+(?= ms)/g).map(Number);
  assert.ok(Math.abs(to - from - length / 4e6) < length / 1e8 + 0.002, `${from} to ${to} of ${length}`);
  await page.getByRole("button", { name: "Show all" }).click();
  // What the script draws of the whole is what the report has drawn.
  const heights = (d) => d.match(/V[\d.]+/g).map((step) => Number(step.slice(1)));
  const [a, b] = [heights(whole), heights(await drawn())];
  const sum = (list) => list.reduce((sum, value) => sum + value, 0);
  assert.ok(Math.abs(sum(a) / a.length - sum(b) / b.length) < 0.2);
}

async function check(path) {
  const { page, context, trouble } = await open(path);
  const report = JSON.parse(await page.locator("#trace-attr-report").textContent());
  assert.match(report.schema, /^trace-attr\.(compare|report)$/);
  assert.equal(await page.locator("h1").count(), 1);
  // Markup in a label would show as elements that the report never makes.
  const tags = await page.evaluate(() => [...new Set([...document.querySelectorAll("*")].map((e) => e.localName))]);
  for (const tag of ["img", "iframe", "object", "embed", "link", "form", "failure", "i"]) {
    assert.ok(!tags.includes(tag), tag);
  }
  assert.equal(await page.locator("script").count(), (await page.locator("#timeline").count()) + 2);
  const rows = await sorting(page);
  await filtering(page, rows);
  const timeline = (await page.locator("#timeline").count()) === 1;
  if (timeline) await zooming(page);

  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  for (const [width, scheme, media] of [
    [360, "light", "screen"], [360, "dark", "screen"], [800, "light", "screen"], [1400, "dark", "screen"], [1100, "light", "print"],
  ]) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: scheme, media });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (media === "screen") assert.ok(wide <= width, `${wide} px at ${width}`);
    const [paper, ink] = await page.evaluate(() => {
      const style = getComputedStyle(document.body);
      return [style.backgroundColor, style.color].map((color) => Number(color.match(/\d+/)[0]));
    });
    assert.equal(paper > ink, scheme === "light" || media === "print", `${scheme} ${media}`);
  }
  assert.deepEqual(trouble, []);
  await context.close();

  // Without a script everything is there but the controls.
  const plain = await open(path, { javaScriptEnabled: false });
  assert.equal(await plain.page.locator("#phases tbody tr").count() >= rows, true);
  assert.equal(await plain.page.locator("button, input").count(), 0);
  assert.deepEqual(plain.trouble, []);
  await plain.context.close();
  return `${rows} phases sorted${rows < 8 ? "" : " and filtered"}${timeline ? ", timeline zoomed" : ""}`;
}

for (const path of pages) {
  const name = path.split("/").pop();
  try {
    console.log(`${name}: chromium: ${await check(path)}`);
  } catch (error) {
    failed = true;
    console.log(`${name}: chromium: ${error.stack}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
