/** The manual: its Markdown in a terminal and in a browser, its links, and the parts generated from the code. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { lexer } from 'marked';
import { madeManual } from '../../build/manual.ts';
import { createProgram } from '../../src/cli/program.ts';
import { manualHtml } from '../../src/manual/html.ts';
import { terminalText } from '../../src/manual/terminal.ts';
import { TOPICS } from '../../src/manual/topics.ts';
import { tableRows } from '../support/manual.ts';

const FOLDER = path.join(import.meta.dirname, '..', '..', 'src', 'manual');
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.md'));
const read = (name: string) => readFileSync(path.join(FOLDER, name), 'utf8');

test('the generated parts are up to date (else: npm run manual)', async () => {
  for (const [name, text] of await madeManual())
    assert.equal(read(name), text, `${name}: run npm run manual`);
});

test('every file in the folder is a topic, and begins with its title', () => {
  assert.deepEqual(
    files.filter((name) => name !== 'README.md').sort(),
    TOPICS.map(({ name }) => `${name}.md`).sort(),
  );
  for (const { name, markdown } of TOPICS) {
    assert.match(markdown, /^# \S.*\n\n/, name);
    assert.equal(
      markdown.match(/^# /gm)?.length,
      1 + (markdown.match(/^```[\s\S]*?^```/gm) ?? []).join('').split(/^# /m).length - 1,
      name,
    );
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
        assert.ok(manualHtml(read(target)).includes(` id="${heading}"`), `${name}: ${href}`);
    }
  }
});

const SAMPLE = `# A title

<!-- a comment -->
One *two* **three** \`code span\` and [Backup](backup.md), [a page](https://example.org) & <b>.
It goes on (see [Backup](backup.md)): [A file failed](operations.md#a-file-failed).

### Part 0

## Part 1

- first
- second point that is long enough to be wrapped in a narrow terminal
  - inner

1. one
2. two

| Name | What |
|---|---|
| \`a\` | short |
| b | x |

\`\`\`sh
wirewatch   serve --data /a/very/long/path/that/is/longer/than/the/terminal
\`\`\`
`;

test('in a terminal: wrapped at its width, code unchanged, tables in columns if they fit', () => {
  assert.equal(
    terminalText(SAMPLE, { columns: 40, styled: false }),
    `A TITLE
=======

One two three \`code span\` and Backup
(\`wirewatch manual backup\`), a page
(https://example.org) & . It goes on
(see Backup, \`wirewatch manual backup\`):
"A file failed" in
\`wirewatch manual operations\`.

Part 0
~~~~~~

Part 1
------

- first
- second point that is long enough to be
  wrapped in a narrow terminal
  - inner

1. one
2. two

NAME  WHAT
\`a\`   short
b     x

\`\`\`
wirewatch   serve --data /a/very/long/path/that/is/longer/than/the/terminal
\`\`\`
`,
  );
});

test('the last column of a table is wrapped if the others leave room', () => {
  const long = 'word '.repeat(8).trim();
  assert.equal(
    terminalText(`| Term | Meaning |\n|---|---|\n| one | ${long} |\n`, { columns: 40, styled: false }),
    `TERM  MEANING
one   word word word word word word word
      word
`,
  );
});

test('a table that does not fit is shown row by row', () => {
  const long = 'word '.repeat(12).trim();
  assert.equal(
    terminalText(
      `| Setting of many words | Default | Meaning |\n|---|---|---|\n| one | \`1\` | ${long} |\n| two | | x |\n`,
      {
        columns: 40,
        styled: false,
      },
    ),
    `one
    Default: \`1\`
    Meaning: word word word word word
    word word word word word word word

two
    Meaning: x
`,
  );
});

test('commands stay on one line, so that they can be copied', () => {
  const command = '`wirewatch ingest replay --from X --to Y`';
  assert.equal(
    terminalText(`To read them again, run ${command}, after that.`, { columns: 47, styled: false }),
    `To read them again, run\n${command},\nafter that.\n`,
  );
});

test('styles do not change the words or the width', () => {
  for (const { name, markdown } of TOPICS) {
    const styled = terminalText(markdown, { columns: 80, styled: true });
    const plain = terminalText(markdown, { columns: 80, styled: false });
    const words = (text: string) => stripVTControlCharacters(text).replaceAll(/[`\s=~-]/g, '');
    assert.equal(words(styled), words(plain), name);
    const code = lexer(markdown).flatMap((token) => (token.type === 'code' ? token.text.split('\n') : []));
    for (const line of stripVTControlCharacters(styled).split('\n'))
      assert.ok(line.length <= 80 || code.includes(line) || !line.trim().includes(' '), `${name}: ${line}`);
    assert.doesNotMatch(plain, /undefined|\[object|[ \t]$|\u00a0|\u2028/m, name);
  }
});

test('in a browser: links between topics, heading anchors, and no raw HTML', () => {
  const page = manualHtml(SAMPLE);
  assert.match(page, /<h1 id="a-title">A title<\/h1>/);
  assert.match(
    page,
    /<a href="\/manual\/backup">Backup<\/a>, <a href="https:\/\/example.org">a page<\/a> &amp; \./,
  );
  assert.match(page, /<code>code span<\/code>/);
  assert.match(page, /<th>Name<\/th>.*\n?.*<\/thead>/);
  assert.doesNotMatch(page, /<!--|<b>/);
  assert.doesNotMatch(
    manualHtml('<script>alert(1)</script>\n\n<img src=x onerror=y> `<i>`'),
    /<script|<img|<i>/,
  );
});
