/** `wirewatch sample`: bundled sample files for the programs around Wirewatch. */
import { anyText, value } from '../operations/member.ts';
import { Refused } from '../refused.ts';
import { SAMPLES } from '../samples/samples.ts';
import { table } from '../text-layout.ts';
import { defineCommand } from './command.ts';

const NAMES = SAMPLES.map(({ name }) => name).join(', ');

export const register = defineCommand({
  members: { file: value(anyText, { hint: NAMES }) },
  operands: ['file'],
  examples: [
    'sample',
    'sample nginx.conf > /etc/nginx/conf.d/wirewatch.conf',
    'sample grafana-dashboard.json > dashboard.json',
  ],
  run({ file }) {
    if (file === undefined)
      return { value: SAMPLES.map(({ name, title }) => ({ file: name, title })), text: listText };
    const sample = SAMPLES.find(({ name }) => name === file);
    if (sample === undefined)
      throw new Refused('usage', `there is no sample ${JSON.stringify(file)}. Samples: ${NAMES}`);
    const text = sample.text();
    return { value: { file, text }, text };
  },
});

function listText(): string {
  const rows = table(SAMPLES, [
    { title: 'FILE', value: ({ name }) => name },
    { title: 'PURPOSE', value: ({ title }) => title },
  ]);
  return `${rows}\n\nTo print one: wirewatch sample FILE`;
}
