/** `wirewatch sample`: bundled sample files for the programs around Wirewatch. */
import { choice } from '../operations/member.ts';
import { SAMPLES, sampleText } from '../samples/samples.ts';
import { documentTable } from '../text-layout.ts';
import { defineCommand } from './command.ts';

export const register = defineCommand({
  members: { file: choice(SAMPLES.map(({ name }) => name)) },
  operands: ['file'],
  examples: [
    'sample',
    'sample nginx.conf > /etc/nginx/conf.d/wirewatch.conf',
    'sample grafana-dashboard.json > dashboard.json',
  ],
  run({ file }) {
    if (file === undefined)
      return { value: SAMPLES.map(({ name, title }) => ({ file: name, title })), text: listText };
    const text = sampleText(file);
    return { value: { file, text }, text };
  },
});

function listText(): string {
  const rows = documentTable(SAMPLES.map(({ name: file, title: purpose }) => ({ file, purpose })));
  return `${rows}\n\nTo print one: wirewatch sample FILE`;
}
