/** The manual: its Markdown in a browser, its links, and the parts generated from the code. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { madeManual } from '../../build/manual.ts';
import { createProgram } from '../../src/cli/program.ts';
import { manualHtml } from '../../src/manual/html.ts';
import { markdownOf, TOPICS } from '../../src/manual/topics.ts';
import { tableRows } from '../support/manual.ts';

const FOLDER = path.join(import.meta.dirname, '..', '..', 'src', 'manual');
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.md'));
const read = (name: string) => readFileSync(path.join(FOLDER, name), 'utf8');

test('the generated parts are up to date (else: npm run manual)', async () => {
  for (const [name, text] of await madeManual())
    assert.equal(read(name), text, `${name}: run npm run manual`);
});

test('every file in the folder is a topic, and begins with its title', () => {
  const topics = TOPICS.map(({ name }) => `${name}.md`);
  assert.deepEqual(files.toSorted(), ['README.md', ...topics].sort());
  for (const topic of TOPICS) {
    const markdown = markdownOf(topic);
    assert.match(markdown, /^# \S.*\n\n/, topic.name);
    const titles = markdown.replaceAll(/^```[\s\S]*?^```/gm, '').match(/^# /gm);
    assert.equal(titles?.length, 1, topic.name);
  }
});

test('the overview of the commands has each of them', async () => {
  const [overview = ''] = read('commands.md').split('Every command takes these options:');
  const named = tableRows(overview).flatMap(([, commands = '']) => commands.replaceAll('`', '').split(', '));
  const { commands } = await createProgram();
  assert.deepEqual(named.sort(), commands.map((one) => one.name()).sort());
});

test('its links lead to existing topics and headings', () => {
  for (const name of files) {
    for (const [, href = ''] of read(name).matchAll(/(?<!!)\[[^\]]*\]\(([^)]+)\)/g)) {
      if (/^https?:/.test(href)) continue;
      const [file = '', heading] = href.split('#');
      const target = file === '' ? name : file;
      assert.ok(files.includes(target), `${name}: ${href}`);
      if (heading !== undefined)
        assert.ok(manualHtml(read(target), '').includes(` id="${heading}"`), `${name}: ${href}`);
    }
  }
});

test('no value of a table is changed by rendering', () => {
  const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" };
  const shown = (html: string) =>
    html.replaceAll(/<[^>]+>/g, '').replaceAll(/&(#?\w+);/g, (_, name: string) => ENTITIES[name] ?? '?');
  const meant = (cell: string) =>
    cell
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll('`', '')
      .replaceAll(/\*\*([^*]+)\*\*/g, '$1');
  for (const name of files) {
    const markdown = read(name).replaceAll(/^```[\s\S]*?^```/gm, '');
    const rendered = manualHtml(markdown, '').matchAll(/<td>([\s\S]*?)<\/td>/g);
    const cells = Array.from(rendered, ([, html = '']) => shown(html));
    assert.deepEqual(cells, tableRows(markdown).flat().map(meant), name);
  }
});

const SAMPLE = `# A title

<!-- a comment -->
One \`code span\` and [Backup](backup.md), [a page](https://example.org) & <b>. See
[A file failed](operations.md#a-file-failed) and [below](#part-1).

| Name | What |
|---|---|
| \`a\` | short |
`;

test('in a browser: links between topics, heading anchors, and no raw HTML', () => {
  const page = manualHtml(SAMPLE, 'own');
  assert.match(page, /<h1 id="a-title">A title<\/h1>/);
  const links = '<a href="#/manual/backup">Backup</a>, <a href="https://example.org">a page</a> &amp; .';
  assert.ok(page.includes(links), page);
  assert.match(page, /<a href="#\/manual\/operations\?section=a-file-failed">/);
  assert.match(page, /<a href="#\/manual\/own\?section=part-1">/);
  assert.match(page, /<code>code span<\/code>/);
  assert.match(page, /<th>Name<\/th>.*\n?.*<\/thead>/);
  assert.doesNotMatch(page, /<!--|<b>/);
  const hostile = manualHtml('<script>alert(1)</script>\n\n<img src=x onerror=y> `<i>`', 'own');
  assert.doesNotMatch(hostile, /<script|<img|<i>/);
});
