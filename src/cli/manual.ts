/** `wirewatch manual`: the manual, bundled so that it is available offline and matches the version. */
import { markdownOf, PARTS, TOPICS } from '../manual/topics.ts';
import { nearest } from '../nearest.ts';
import { anyText, value } from '../operations/member.ts';
import { Refused } from '../refused.ts';
import { defineCommand, type Result } from './command.ts';

export const register = defineCommand({
  members: { topic: value(anyText, { hint: TOPICS.map(({ name }) => name).join(', ') }) },
  operands: ['topic'],
  examples: ['manual', 'manual export-format | less'],
  run({ topic }) {
    if (topic === undefined)
      return { value: TOPICS.map(({ name, title }) => ({ topic: name, title })), text: contentsText };
    return showTopic(topic);
  },
});

/** Markdown as it is, so that nothing in it is lost. */
function showTopic(name: string): Result {
  const beginning = TOPICS.filter((known) => known.name.startsWith(name));
  const topic =
    TOPICS.find((known) => known.name === name) ?? (beginning.length === 1 ? beginning[0] : undefined);
  if (topic === undefined) {
    const names = TOPICS.map((known) => known.name);
    const meant = beginning[0]?.name ?? nearest(name, names, 3);
    throw new Refused(
      'usage',
      `the manual has no topic ${JSON.stringify(name)}.${meant === null ? '' : ` Did you mean ${meant}?`} To list the topics, run: wirewatch manual`,
    );
  }
  const markdown = markdownOf(topic);
  return { value: { topic: topic.name, markdown }, text: markdown };
}

function contentsText(): string {
  const nameWidth = Math.max(...TOPICS.map(({ name }) => name.length));
  const parts = PARTS.map(({ title, topics }) =>
    [title, ...topics.map((topic) => `  ${topic.name.padEnd(nameWidth)}  ${topic.title}`)].join('\n'),
  );
  return `${parts.join('\n\n')}\n\nRead a topic with: wirewatch manual TOPIC`;
}
