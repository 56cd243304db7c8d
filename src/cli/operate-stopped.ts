/** Does what a command asks on a stopped installation, in the command's own process, under the installation's lock. */
import type { Command } from 'commander';
import type { Actor } from '../auth/actor.ts';
import { applyRevocations } from '../auth/denials.ts';
import { openAccess } from '../auth/open-access.ts';
import { requireDropOf } from '../drop/drop-folder.ts';
import { type Context, type Operation, refusedBy } from '../operations/operation.ts';
import { outcomeDocument } from '../operations/problem.ts';
import { failed } from '../refused.ts';
import { createFileReader } from '../store/file-reader.ts';
import { ensureFolder, isThere } from '../store/folder.ts';
import { isLocked, keepInPlace, takeLock } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { readRole, roleOf } from '../store/role.ts';
import { SECOND_MS } from '../time.ts';
import { configOf, requireInstallation } from './installation.ts';
import { commandFolder } from './options.ts';
import { note } from './output.ts';

/** How long another command may take before this one gives up. */
const OTHER_COMMAND_MS = 15 * SECOND_MS;

/** `given`: the members, as JSON. */
export type Asked = Readonly<{ operation: Operation; given: object; by: Actor }>;

/** @returns null if an appliance has the folder, but cannot be asked yet */
export async function operateStopped(command: Command, { operation, given, by }: Asked) {
  // First: to others an installation would seem to be missing, or its configuration.
  const folder = commandFolder(command);
  requireOwner(folder);
  const config = configOf(command);
  if (!operation.creates) requireInstallation(folder);
  using opened = new DisposableStack();
  const isNew = !isThere(folder.access);
  if (operation.creates) ensureFolder(folder);
  const isWriter = operation.kind === 'act';
  opened.defer(keepInPlace(folder));
  if (isWriter) {
    if (isLocked(folder.serveLock)) return null;
    const release = takeLock(folder.lock, OTHER_COMMAND_MS);
    if (release === null) {
      if (isLocked(folder.serveLock)) return null;
      throw failed(
        `another command is using the data folder ${folder.root}. Try again when it has finished.`,
      );
    }
    opened.defer(release);
    const role = roleOf(readRole(folder), config.copy);
    if (role !== 'writer' && operation.name !== 'promote') throw refusedBy(role, config.copy.to);
    // Before anything is changed.
    if (operation.readsDrop) requireDropOf(folder, config.ingest.drop);
  }
  const options = {
    create: operation.creates ?? false,
    operation: { kind: 'command', command: operation.name, ...by },
    ...(isWriter && {
      onRecovered: (reason: string) =>
        note(`access.db could not be used (${reason}): its spare copy took its place`),
    }),
    onSpareStale: (reason: string) =>
      note(
        `the change is made, but the spare copy of access.db could not be updated (${reason}); the next change or start does it`,
      ),
  };
  const access = opened.use(openAccess(folder.root, options));
  const detections = opened.use(createFileReader(folder.detections));
  const context: Context = {
    folder,
    kind: 'appliance',
    isNew,
    config,
    by,
    nowMs: Date.now(),
    live: null,
    access: () => access,
    change(work) {
      applyRevocations(folder, access);
      return work(access);
    },
    detections: () => detections.db(),
    async ingest(request) {
      // It may be made anew, which must not happen under a reader.
      detections.close();
      const { ingestAlone } = await import('./ingest-alone.ts');
      return (await ingestAlone(config, request)) as never;
    },
    async promote() {
      if (roleOf(readRole(folder), config.copy) === 'writer') return false;
      throw failed('Wirewatch does not run. Start it as a standby, and promote it then.');
    },
    running: null,
  };
  return outcomeDocument(await operation.run(context, given));
}
