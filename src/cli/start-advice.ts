/** What a start tells the operator: settings that need attention, and the steps to a first key. */

import type { Command } from 'commander';
import { isInTheClear } from '../config/listening.ts';
import { printable } from '../printable.ts';
import { reasonOf } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { dataFolder } from '../store/folder.ts';
import { installationOptions } from './config.ts';
import { firstSteps, firstStepsText } from './first-steps.ts';
import type { Serving } from './serving.ts';

/** Logs the advice; on a terminal, prints the first steps as text. */
export function adviseOnStart(serving: Serving, command: Command): void {
  warnOfSettings(serving);
  adviseFirstSteps(serving, command);
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

/** The steps to a first key; silent once there is an active key. */
function adviseFirstSteps({ appliance, config, log }: Serving, command: Command): void {
  let db: Database | null = null;
  try {
    db = openDatabase(dataFolder(config.dataFolder).access, 'read');
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
  } catch (error) {
    // It serves already: whoever checks keys says by an alert that access.db cannot be read.
    log.warn({ detail: reasonOf(error) }, 'cannot check whether a key is in use');
  } finally {
    db?.close();
  }
}
