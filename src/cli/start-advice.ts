/** What a start tells the operator: settings that need attention, and what is still missing before anybody can read. */
import type { Command } from 'commander';
import { isInTheClear } from '../config/listening.ts';
import { printable } from '../printable.ts';
import { openReader } from '../store/database.ts';
import { dataFolder } from '../store/folder.ts';
import { installationOptions } from './config.ts';
import { firstSteps, firstStepsText } from './first-steps.ts';
import type { Serving } from './serving.ts';

/** Logs it; the first steps go to a terminal as text where there is one. */
export function adviseOnStart(serving: Serving, command: Command): void {
  warnOfSettings(serving);
  sayWhatIsMissing(serving, command);
}

function warnOfSettings({ appliance: { url }, config: { server }, log }: Serving): void {
  if (server.base_url === '') {
    log.warn(
      { url },
      'base_url is not set: links and error types name the listening address, which others may not reach. Set it with --base-url',
    );
  }
  if (isInTheClear(server)) {
    log.warn(
      { url },
      'keys cross the network in the clear: there is neither a certificate nor a trusted proxy',
    );
  }
}

/** Somebody who starts it for the first time should not have to guess; with a key in use nothing is said. */
function sayWhatIsMissing({ appliance, config, log }: Serving, command: Command): void {
  const db = openReader(dataFolder(config.dataFolder).access);
  try {
    const next = firstSteps(db, installationOptions(command, config), Date.now());
    if (next.length === 0) return;
    if (process.stderr.isTTY) {
      process.stderr.write(printable(firstStepsText(next, appliance.url, appliance.drop)));
      return;
    }
    log.info(
      { next, drop: appliance.drop },
      'nobody can read yet: there is no key in use. See "wirewatch manual quick-start"',
    );
  } finally {
    db.close();
  }
}
