/** `wirewatch manual`: the manual, bundled so that it is available offline and matches the version. */
import { spawnSync } from 'node:child_process';
import { COLUMNS_MAX, COLUMNS_MIN, terminalText } from '../manual/terminal.ts';
import { PARTS, TOPICS } from '../manual/topics.ts';
import { nearest } from '../nearest.ts';
import { Refused } from '../refused.ts';
import { argument, defineCommand, type Result } from './command.ts';
import { commonOptions } from './options.ts';

export const register = defineCommand({
  arguments: [argument('[topic]', TOPICS.map(({ name }) => name).join(', '))],
  examples: ['manual', 'manual export-format | less'],
  run({ topic }, self) {
    if (topic === undefined)
      return { value: TOPICS.map(({ name, title }) => ({ topic: name, title })), text: contentsText };
    return showTopic(topic, commonOptions(self).json);
  },
});

/** @returns null if the topic was shown on the terminal */
function showTopic(name: string, json: boolean): Result | null {
  const topic = TOPICS.find((known) => known.name === name);
  if (topic === undefined) {
    const names = TOPICS.map((known) => known.name);
    const meant = nearest(name, names, 3);
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
  if (json || !isTTY) return { value: { topic: topic.name, markdown: topic.markdown }, text };
  // Not by way of the runner, which would remove the styles.
  if (!paged(text)) process.stdout.write(text);
  return null;
}

/**
 * Shows a text in the user's pager: `PAGER`, else less, which exits by itself if the text fits on one screen.
 *
 * @returns false if there is no pager, or `PAGER` is empty or `cat`
 */
function paged(text: string): boolean {
  const { PAGER } = process.env;
  if (PAGER === '' || PAGER === 'cat') return false;
  const { status } = spawnSync(PAGER ?? 'less', {
    input: text,
    stdio: ['pipe', 'inherit', 'inherit'],
    // PAGER may be a command line.
    shell: PAGER !== undefined,
    env: { ...process.env, LESS: `${process.env.LESS ?? '-FX'} -R` },
  });
  return status !== null && ![126, 127].includes(status);
}

/** Whether a pager is known to pass styles to the terminal. */
function showsStyles(pager = ''): boolean {
  return pager === '' || pager === 'cat' || /\bless\b/.test(pager);
}

function contentsText(): string {
  const nameWidth = Math.max(...TOPICS.map(({ name }) => name.length));
  const parts = PARTS.map(({ title, topics }) =>
    [title, ...topics.map((topic) => `  ${topic.name.padEnd(nameWidth)}  ${topic.title}`)].join('\n'),
  );
  return `${parts.join('\n\n')}\n\nRead a topic with: wirewatch manual TOPIC`;
}
