/** `wirewatch licenses`: the bundled software, and the licence of each part. */
import type { Command } from 'commander';
import { type License, licenses } from '../packed.ts';
import { Refused } from '../refused.ts';
import { addExamples, commonOptions } from './options.ts';
import { print, table } from './output.ts';

const RULE = '-'.repeat(80);

export function register(command: Command): void {
  command.action((_options: unknown, self: Command) => {
    const inside = licenses();
    if (inside === null) {
      throw new Refused(
        'failed',
        'nothing is bundled when Wirewatch runs from its sources. Each package in node_modules contains its own licence.',
      );
    }
    print(inside, { json: commonOptions(self).json, text: () => text(inside) });
  });
  addExamples(command, ['licenses | less', 'licenses --json']);
}

/** First the list, then the texts. */
function text(inside: readonly License[]): string {
  const list = table(inside, [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'VERSION', value: ({ version }) => version },
    { title: 'LICENCE', value: ({ license }) => license },
  ]);
  const texts = inside.map((one) => `${one.name} ${one.version}\n\n${one.text}`);
  return [list, ...texts].join(`\n\n${RULE}\n\n`);
}
