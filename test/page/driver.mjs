// A browser that does what lines of JSON on standard input say, and answers each with a line: {"value": ..} or {"error": ..}.
import { createInterface } from 'node:readline'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const browser = await chromium.launch({ executablePath: process.argv[2], args: ['--no-sandbox', '--disable-dev-shm-usage'] })
let context
let page
let seen

const commands = {
  // A fresh browser profile. Everything that goes wrong in it, and everything that leaves its origin, is remembered.
  async open({ url, width, height, dark }) {
    await context?.close()
    context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', deviceScaleFactor: width < 600 ? 2 : 1, reducedMotion: 'reduce' })
    page = await context.newPage()
    page.setDefaultTimeout(30000)
    seen = { foreign: [], errors: [] }
    const { origin } = new URL(url)
    page.on('request', (r) => new URL(r.url()).origin === origin || seen.foreign.push(r.url()))
    page.on('pageerror', (e) => seen.errors.push(String(e)))
    page.on('console', (m) => m.type() === 'error' && seen.errors.push(m.text()))
    await page.goto(url)
  },
  go: ({ hash }) => page.evaluate((h) => { location.hash = h }, hash),
  eval: ({ js }) => page.evaluate(js),
  // By the debugger's door: the page's policy lets no text be run as a script in it.
  async wait({ js, ms }) {
    const until = Date.now() + ms
    while (!(await page.evaluate(js))) {
      if (Date.now() > until) throw new Error(`not within ${ms} ms; the page shows: ${(await page.evaluate('document.body.innerText')).slice(0, 1500)}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return true
  },
  click: ({ at }) => page.locator(at).first().click(),
  fill: ({ at, text }) => page.locator(at).first().fill(text),
  choose: ({ at, value }) => page.locator(at).first().selectOption(value),
  press: ({ key }) => page.keyboard.press(key),
  text: ({ at }) => page.locator(at).first().innerText(),
  shot: ({ path, full }) => page.screenshot({ path, fullPage: Boolean(full) }).then(() => path),
  async axe() {
    await page.evaluate(axe)
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
    return found.violations.map((v) => ({ id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)) }))
  },
  async kept() {
    return { ...seen, cookies: await context.cookies(), local: await page.evaluate(() => Object.keys(localStorage)), session: await page.evaluate(() => Object.keys(sessionStorage)) }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  try {
    console.log(JSON.stringify({ value: (await commands[command.do](command)) ?? null }))
  } catch (e) {
    console.log(JSON.stringify({ error: String(e) }))
  }
}
await browser.close()
