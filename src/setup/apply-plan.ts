/** Writes the planned files, or removes them; keeps an existing configuration and modified files. */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../config/load.ts';
import { Refused } from '../refused.ts';
import { marked, placeFile, removeFile, stateOf, wasMadeWith } from './marked-file.ts';
import { nextSteps, stepsAfterUndo } from './next-steps.ts';
import {
  below,
  ENABLED_PATH,
  type PlannedFile,
  planSetup,
  SERVICE_CONFIG,
  type SetupChoices,
  SYSUSERS_PATH,
  UNIT_PATH,
} from './plan.ts';
import { pasted } from './shell.ts';

export interface SetupFile {
  readonly what: PlannedFile['what'];
  readonly path: string;
  readonly outcome: 'written' | 'renewed' | 'unchanged' | 'kept' | 'removed' | 'absent';
  /** Why it was kept. */
  readonly reason?: string;
  /** In a dry run: the text that would be written. */
  readonly text?: string;
}

/** As `--json` prints it. */
export interface SetupResult {
  readonly dry_run: boolean;
  readonly files: readonly SetupFile[];
  /** Options that have no effect because a file was kept, and what to do. */
  readonly not_applied: readonly string[];
  /** Lines for a shell; comments begin with #. */
  readonly next: readonly string[];
}

/** The installation to undo; paths as they are in the finished system. */
export interface UndoChoices {
  readonly root: string;
  readonly data: string;
  /** Where configurations may be. */
  readonly configs: readonly string[];
  /** The program, which the operator may want to delete, too. */
  readonly program: string;
  /** Whether to remove the unit and the entry of its user, too. */
  readonly isService: boolean;
}

/** The folder of the configuration, which is removed when it is empty. */
const OWN_FOLDER = path.dirname(SERVICE_CONFIG);
const DATA_FOLDER_MODE = 0o700;

/** @throws Refused for invalid choices, and if something cannot be read or written */
export function setUp(choices: SetupChoices, isDry: boolean): SetupResult {
  const plan = planSetup(choices);
  const isNew = choices.service === null && !isDry;
  if (isNew) mkdirSync(below(choices.root, choices.data), { recursive: true, mode: DATA_FOLDER_MODE });
  const files = plan.files.map((planned) => place(planned, choices.root, isDry));
  const notApplied = [
    ...plan.notApplied,
    ...plan.files.flatMap((planned) => notAppliedTo(planned, choices.root)),
  ];
  const next = nextSteps(choices, plan, isEnabled(choices.root));
  return { dry_run: isDry, files, not_applied: notApplied, next };
}

/** Whether the service starts at boot. */
function isEnabled(root: string): boolean {
  return lstatSync(below(root, ENABLED_PATH), { throwIfNoEntry: false }) !== undefined;
}

function place({ what, path, text }: PlannedFile, root: string, isDry: boolean): SetupFile {
  const file = below(root, path);
  const state = stateOf(file);
  const content = marked(text);
  const shown = isDry ? { text: content } : {};
  if (state === 'absent') {
    if (!isDry) placeFile(file, content);
    return { what, path, outcome: 'written', ...shown };
  }
  if (what === 'configuration')
    return { what, path, outcome: 'kept', reason: 'setup never overwrites a configuration' };
  if (state !== 'own') return { what, path, outcome: 'kept', reason: REASONS[state], ...shown };
  if (readFileSync(file, 'utf8') === content) return { what, path, outcome: 'unchanged', ...shown };
  if (!isDry) placeFile(file, content);
  return { what, path, outcome: 'renewed', ...shown };
}

/** The note on a unit, or an entry of a user, that was kept although it differs from the plan. */
function notAppliedTo({ what, path, text }: PlannedFile, root: string): string[] {
  const file = below(root, path);
  const state = stateOf(file);
  if (what === 'configuration' || state === 'absent' || state === 'own') return [];
  // Modified, but written with the same choices: nothing that was asked for is missing.
  if (state === 'changed' && wasMadeWith(file, text)) return [];
  const keep = what === 'unit' ? 'Move your changes to "systemctl edit wirewatch", r' : 'R';
  return [
    `${path}: ${REASONS[state]}, so the options of this command have no effect on it. ${keep}emove the file, and run the command again; --dry-run shows what it would write`,
  ];
}

const REASONS = {
  changed: 'it was modified after setup wrote it',
  foreign: 'setup did not write it',
};

/** @throws Refused while the service is enabled, and if something cannot be removed */
export function undoSetup(choices: UndoChoices, isDry: boolean): SetupResult {
  const { root, configs, isService } = choices;
  if (isService && isEnabled(root)) {
    throw new Refused(
      'failed',
      `the service is enabled (${below(root, ENABLED_PATH)}). Disable it first: systemctl ${root === '/' ? 'disable --now' : `--root=${root} disable`} wirewatch`,
    );
  }
  const folders = remainingFolders(choices);
  const ours = configs.map((config): [PlannedFile['what'], string] => ['configuration', config]);
  if (isService) ours.push(['unit', UNIT_PATH], ['user', SYSUSERS_PATH]);
  const files = ours.map(([what, path]) => remove(what, path, root, isDry));
  const folder = below(root, OWN_FOLDER);
  const isOurs = configs.some((config) => path.dirname(config) === OWN_FOLDER);
  if (!isDry && isOurs && existsSync(folder)) removeIfEmpty(folder);
  const removed = new Set(files.filter(({ outcome }) => outcome === 'removed').map(({ what }) => what));
  const left = files
    .filter(({ reason }) => reason === REASONS.changed)
    .map((file) => `${file.path}: ${file.reason}. To remove it anyway: rm ${pasted(below(root, file.path))}`);
  return { dry_run: isDry, files, not_applied: left, next: stepsAfterUndo(choices, removed, folders) };
}

/** The data folder and those outside it. Read before the configuration is removed, which names them. */
function remainingFolders({ root, data, configs }: UndoChoices): string[] {
  const folders = [`${data}: the data folder`];
  const config = configs.map((one) => below(root, one)).find((one) => existsSync(one));
  if (config === undefined) return folders;
  try {
    const { ingest, backup } = loadConfig({ flags: {}, env: {}, file: config, dataFolder: data });
    if (!ingest.drop.startsWith(`${data}/`)) folders.push(`${ingest.drop}: the drop folder`);
    if (!backup.folder.startsWith(`${data}/`)) folders.push(`${backup.folder}: the backups`);
  } catch {
    // A configuration that does not load names no folders; they stay all the same.
  }
  return folders;
}

function remove(what: PlannedFile['what'], path: string, root: string, isDry: boolean): SetupFile {
  const file = below(root, path);
  const state = stateOf(file);
  if (state === 'absent') return { what, path, outcome: 'absent' };
  if (state !== 'own') return { what, path, outcome: 'kept', reason: REASONS[state] };
  if (!isDry) removeFile(file);
  return { what, path, outcome: 'removed' };
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It is not empty, or cannot be removed: it stays.
  }
}
