/** `wirewatch manual`: the manual, bundled so that it is available offline and matches the version. */
import { spawnSync } from 'node:child_process';
import type { Command } from 'commander';
import { COLUMNS_MAX, COLUMNS_MIN, terminalText } from '../manual/terminal.ts';
import { PARTS, TOPICS } from '../manual/topics.ts';
import { nearest } from '../nearest.ts';
import { Refused } from '../refused.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

export function register(command: Command): void {
  command
    .argument('[topic]', TOPICS.map(({ name }) => name).join(', '))
    .action((topic: string | undefined, _options: unknown, self: Command) => {
      const { json } = commonOptions(self);
      if (topic === undefined) print(contents(), { json, text: contentsText });
      else printTopic(topic, json);
    });
  addExamples(command, ['manual', 'manual export-format | less']);
}

function printTopic(name: string, json: boolean): void {
  const topic = TOPICS.find((known) => known.name === name);
  if (topic === undefined) {
    const meant = nearest(
      name,
      TOPICS.map((known) => known.name),
      3,
    );
    throw new Refused(
      'usage',
      `the manual has no topic ${JSON.stringify(name)}.${meant === null ? '' : ` Did you mean ${meant}?`} To list the topics, run: wirewatch manual`,
    );
  }
  const { isTTY } = process.stdout;
  const columns = isTTY ? process.stdout.columns : Number(process.env.COLUMNS) || COLUMNS_MAX;
  const text = terminalText(topic.markdown, {
    columns: Math.min(Math.max(columns, COLUMNS_MIN), COLUMNS_MAX),
    styled: isTTY && process.stdout.hasColors() && showsStyles(process.env.PAGER),
  });
  // Of our own making: its styles may reach the terminal.
  if (!json && isTTY) return void (paged(text) || process.stdout.write(text));
  print({ topic: topic.name, markdown: topic.markdown }, { json, text });
}

/**
 * Shows a text in the user's pager: `PAGER`, else less, which exits by itself if the text fits on one screen.
 *
 * @returns false if there is no pager, or none is wanted (`PAGER=` or `PAGER=cat`)
 */
function paged(text: string): boolean {
  const { PAGER } = process.env;
  if (PAGER === '' || PAGER === 'cat') return false;
  const { status } = spawnSync(PAGER ?? 'less', {
    input: text,
    stdio: ['pipe', 'inherit', 'inherit'],
    // It may be a command line.
    shell: PAGER !== undefined,
    env: { ...process.env, LESS: `${process.env.LESS ?? '-FX'} -R` },
  });
  return status !== null && ![126, 127].includes(status);
}

/** Of other pagers it is not known. */
function showsStyles(pager = ''): boolean {
  return pager === '' || pager === 'cat' || /\bless\b/.test(pager);
}

function contents(): { topic: string; title: string }[] {
  return TOPICS.map(({ name, title }) => ({ topic: name, title }));
}

function contentsText(): string {
  const nameWidth = Math.max(...TOPICS.map(({ name }) => name.length));
  const parts = PARTS.map(({ title, topics }) =>
    [title, ...topics.map((topic) => `  ${topic.name.padEnd(nameWidth)}  ${topic.title}`)].join('\n'),
  );
  return `${parts.join('\n\n')}\n\nRead a topic with: wirewatch manual TOPIC`;
}
