/** `wirewatch sample`: bundled sample files for the programs around Wirewatch. */
import type { Command } from 'commander';
import { Refused } from '../refused.ts';
import { SAMPLES } from '../samples/samples.ts';
import { addExamples, commonOptions } from './options.ts';
import { print, table } from './output.ts';

export function register(command: Command): void {
  command
    .argument('[file]', SAMPLES.map(({ name }) => name).join(', '))
    .action((file: string | undefined, _options: unknown, self: Command) => {
      const { json } = commonOptions(self);
      if (file === undefined) {
        print(
          SAMPLES.map(({ name, title }) => ({ file: name, title })),
          { json, text: listText },
        );
        return;
      }
      const sample = SAMPLES.find(({ name }) => name === file);
      if (sample === undefined) {
        throw new Refused(
          'usage',
          `there is no sample ${JSON.stringify(file)}. Samples: ${SAMPLES.map(({ name }) => name).join(', ')}`,
        );
      }
      const text = sample.text();
      print({ file: sample.name, text }, { json, text });
    });
  addExamples(command, [
    'sample',
    'sample nginx.conf > /etc/nginx/conf.d/wirewatch.conf',
    'sample grafana-dashboard.json > dashboard.json',
  ]);
}

function listText(): string {
  const rows = table(SAMPLES, [
    { title: 'FILE', value: ({ name }) => name },
    { title: 'PURPOSE', value: ({ title }) => title },
  ]);
  return `${rows}\n\nTo print one: wirewatch sample FILE`;
}
