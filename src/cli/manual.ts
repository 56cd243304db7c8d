/** `wirewatch manual`: the manual, bundled so that it is available offline and matches the version. */
import { markdownOf, PARTS, TOPICS } from '../manual/topics.ts';
import { choice } from '../operations/member.ts';
import { defineCommand } from './command.ts';

export const register = defineCommand({
  members: { topic: choice(TOPICS.map(({ name }) => name)) },
  operands: ['topic'],
  examples: ['manual', 'manual export-format | less'],
  run({ topic: name }) {
    const topic = TOPICS.find((known) => known.name === name);
    if (topic === undefined) {
      const nameWidth = Math.max(...TOPICS.map(({ name }) => name.length));
      const parts = PARTS.map(({ title, topics }) =>
        [title, ...topics.map((own) => `  ${own.name.padEnd(nameWidth)}  ${own.title}`)].join('\n'),
      );
      const value = TOPICS.map(({ name, title }) => ({ topic: name, title }));
      return { value, text: `${parts.join('\n\n')}\n\nRead a topic with: wirewatch manual TOPIC` };
    }
    // Markdown as it is, so that nothing in it is lost.
    const markdown = markdownOf(topic);
    return { value: { topic: topic.name, markdown }, text: markdown };
  },
});
