/** Writes what was planned, or takes it back; an existing configuration, and what somebody changed, stays. */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../config/load.ts';
import { Refused } from '../refused.ts';
import { type LeftBehind, nextSteps, stepsAfterUndo } from './next-steps.ts';
import { marked, placeFile, removeFile, stateOf, wasMadeWith } from './own-file.ts';
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
  /** In a dry run: what it would hold. */
  readonly text?: string;
}

/** As `--json` prints it. */
export interface SetupResult {
  readonly dry_run: boolean;
  readonly files: readonly SetupFile[];
  /** What was asked for and does not hold, since a file that was kept says otherwise; and what to do. */
  readonly not_applied: readonly string[];
  /** Lines for a shell; comments begin with #. */
  readonly next: readonly string[];
}

/** What is to be taken back; paths as they are in the finished system. */
export interface UndoChoices {
  readonly root: string;
  readonly data: string;
  /** Where configurations may be. */
  readonly configs: readonly string[];
  /** The program, for those who want to delete that, too. */
  readonly program: string;
  /** Whether the unit and the entry of its user go, too. */
  readonly isService: boolean;
}

/** A folder of ours, which goes when it is empty. */
const OWN_FOLDER = path.dirname(SERVICE_CONFIG);
const DATA_FOLDER_MODE = 0o700;

/** @throws Refused for wrong choices, and where something cannot be read or written */
export function setUp(choices: SetupChoices, isDry: boolean): SetupResult {
  const plan = planSetup(choices);
  const isNew = choices.service === null && !isDry;
  if (isNew) mkdirSync(below(choices.root, choices.data), { recursive: true, mode: DATA_FOLDER_MODE });
  const files = plan.files.map((planned) => place(planned, choices.root, isDry));
  const notApplied = [
    ...plan.notApplied,
    ...plan.files.flatMap((planned) => unheeded(planned, choices.root)),
  ];
  const isThere = (file: string) =>
    lstatSync(below(choices.root, file), { throwIfNoEntry: false }) !== undefined;
  return {
    dry_run: isDry,
    files,
    not_applied: notApplied,
    next: nextSteps(choices, plan, isThere(ENABLED_PATH)),
  };
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
    return { what, path, outcome: 'kept', reason: 'a configuration is never written over' };
  if (state !== 'own') return { what, path, outcome: 'kept', reason: REASONS[state], ...shown };
  if (readFileSync(file, 'utf8') === content) return { what, path, outcome: 'unchanged', ...shown };
  if (!isDry) placeFile(file, content);
  return { what, path, outcome: 'renewed', ...shown };
}

/** What is to be said of a unit, or an entry of a user, that was kept and is not what would be made now. */
function unheeded({ what, path, text }: PlannedFile, root: string): string[] {
  const file = below(root, path);
  const state = stateOf(file);
  if (what === 'configuration' || state === 'absent' || state === 'own') return [];
  // Changed, but made by the same choices as those of now: nothing that was asked for is missing.
  if (state === 'changed' && wasMadeWith(file, text)) return [];
  const keep = what === 'unit' ? 'Move what is yours into "systemctl edit wirewatch", r' : 'R';
  return [
    `${path}: ${REASONS[state]}, so it does not follow what was asked for. ${keep}emove the file and run this again; --dry-run shows what it would hold`,
  ];
}

const REASONS = {
  changed: 'it was changed since setup made it',
  foreign: 'setup did not make it',
};

/** @throws Refused while the service is enabled, and where something cannot be removed */
export function takeBack(choices: UndoChoices, isDry: boolean): SetupResult {
  const { root, configs, isService } = choices;
  const enabled = below(root, ENABLED_PATH);
  if (isService && lstatSync(enabled, { throwIfNoEntry: false }) !== undefined) {
    throw new Refused(
      'failed',
      `the service is enabled (${enabled}). First run: systemctl ${root === '/' ? 'disable --now' : `--root=${root} disable`} wirewatch`,
    );
  }
  const leftBehind = leftBehindBy(choices);
  const ours = configs.map((config): [PlannedFile['what'], string] => ['configuration', config]);
  if (isService) ours.push(['unit', UNIT_PATH], ['user', SYSUSERS_PATH]);
  const files = ours.map(([what, path]) => remove(what, path, root, isDry));
  const folder = below(root, OWN_FOLDER);
  const isOurs = configs.some((config) => path.dirname(config) === OWN_FOLDER);
  if (!isDry && isOurs && existsSync(folder)) removeIfEmpty(folder);
  const removed = new Set(files.filter(({ outcome }) => outcome === 'removed').map(({ what }) => what));
  const left = files
    .filter(({ reason }) => reason === REASONS.changed)
    .map((file) => `${file.path}: ${file.reason}. Remove it by hand: rm ${pasted(below(root, file.path))}`);
  return { dry_run: isDry, files, not_applied: left, next: stepsAfterUndo(root, removed, leftBehind) };
}

/** Read before the configuration goes, which says where the folders are. */
function leftBehindBy({ root, data, configs, program }: UndoChoices): LeftBehind {
  const outside = (folder: string) => (folder.startsWith(`${data}/`) ? null : folder);
  const config = configs.map((one) => below(root, one)).find((one) => existsSync(one));
  try {
    if (config === undefined) return { data, drop: null, backups: null, program };
    const { ingest, backup } = loadConfig({ flags: {}, env: {}, file: config, dataFolder: data });
    return { data, drop: outside(ingest.drop), backups: outside(backup.folder), program };
  } catch {
    // One that does not load says nothing; what it names stays all the same.
    return { data, drop: null, backups: null, program };
  }
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
    // Something else is in it, or it may not be removed: it stays.
  }
}
