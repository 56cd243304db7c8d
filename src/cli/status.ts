/** `wirewatch status`: the read of the same name, also again and again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { STATUS } from '../operations/status-views.ts';
import { printable } from '../printable.ts';
import { misused } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { defineCommand } from './command.ts';
import { operate } from './operate.ts';
import { commandOf } from './operation-command.ts';
import { commonOptions, DROP_OPTION } from './options.ts';

const WATCH_EVERY_MS = 2 * SECOND_MS;

const once = commandOf(STATUS);

export const register = defineCommand({
  ...once,
  options: [DROP_OPTION, new Option('--watch', 'refresh the screen until you press Ctrl-C')],
  run(values, command, given) {
    const { watch = false } = command.opts<{ watch?: boolean }>();
    return watch ? watchStatus(command) : once.run(values, command, given);
  },
});

async function watchStatus(command: Command): Promise<never> {
  if (commonOptions(command).json || process.stdout.isTTY !== true)
    throw misused(
      '--watch needs a terminal, and cannot be combined with --json. Leave out --watch to print the status once.',
    );
  for (;;) {
    const { value } = await operate(command, STATUS, {});
    const text = printable(STATUS.text(value) ?? '');
    // Drawn over the previous one, from the top of the screen, clearing the rest of each line and of the screen.
    process.stdout.write(`\x1b[H${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
    await sleep(WATCH_EVERY_MS);
  }
}
