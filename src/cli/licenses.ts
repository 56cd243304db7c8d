/** `wirewatch licenses`: the bundled software, and the licence of each part. */
import { licenses } from '../packed.ts';
import { failed } from '../refused.ts';
import { documentTable } from '../text-layout.ts';
import { defineCommand } from './command.ts';

export const register = defineCommand({
  examples: ['licenses | less', 'licenses --json'],
  run() {
    const bundled = licenses();
    if (bundled === null)
      throw failed(
        'nothing is bundled when Wirewatch runs from its sources. Each package in node_modules contains its own licence.',
      );
    const list = documentTable(bundled, ['name', 'version', 'license']);
    const texts = bundled.map(({ name, version, text }) => `${name} ${version}\n\n${text}`);
    return { value: bundled, text: [list, ...texts].join(`\n\n${'-'.repeat(80)}\n\n`) };
  },
});
