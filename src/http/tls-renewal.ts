/**
 * Takes a renewed certificate into use without a restart, and says when one is about to expire or cannot be used.
 *
 * Both files are read every few seconds and compared as a whole: that sees a rename, a changed link and writing in
 * place alike, on any file system. Between two writes they do not fit together, so what is wrong must be so at two
 * looks before anybody is told. What is in use stays in use until a pair is good.
 */
import type { Conditions } from '../health/alert-conditions.ts';
import type { Logger } from '../log.ts';
import { paced } from '../pace.ts';
import { reasonOf } from '../refused.ts';
import { formatMs, type Now, SECOND_MS } from '../time.ts';
import {
  checkTlsPair,
  readTlsFiles,
  type TlsFiles,
  type TlsPair,
  type TlsPaths,
  validityError,
} from './tls-pair.ts';

export interface TlsRenewalOptions {
  readonly paths: TlsPaths;
  /** What is in use. */
  readonly pair: TlsPair;
  readonly onRenewed: (pair: TlsPair) => void;
  readonly conditions: Pick<Conditions, 'set'>;
  readonly log: Logger;
  readonly now: Now;
  /** null: only when told to. */
  readonly everyMs?: number | null;
}

export interface TlsRenewal {
  /** Looks now. Settles when what was found is in use, or refused. */
  look(): Promise<void>;
  close(): void;
}

const LOOK_EVERY_MS = paced(2 * SECOND_MS);
const LOOKS_BEFORE_WARNING = 2;

export function watchTlsPair(options: TlsRenewalOptions): TlsRenewal {
  const { paths, onRenewed, conditions, log, now, everyMs = LOOK_EVERY_MS } = options;
  let pair = options.pair;
  /** What was wrong at the last look, and how often in a row; null: nothing was. */
  let wrong: { readonly files: TlsFiles | null; readonly reason: string; readonly looks: number } | null =
    null;
  const set: Conditions['set'] = (name, detail) => conditions.set(name, detail, paths.certificate);
  const checkValidity = () => set('certificate expires', validityError(paths, pair, now()));

  async function look(): Promise<void> {
    const found = await readTlsFiles(paths).catch(reasonOf);
    if (typeof found === 'string') note(null, found);
    else if (isSame(found, pair)) wrong = null;
    else if (wrong !== null && wrong.files !== null && isSame(found, wrong.files)) note(found, wrong.reason);
    else take(found);
    if (wrong === null) set('certificate not usable', null);
    checkValidity();
  }

  function take(files: TlsFiles): void {
    try {
      pair = checkTlsPair(paths, files);
    } catch (error) {
      note(files, reasonOf(error));
      return;
    }
    wrong = null;
    onRenewed(pair);
    const valid_to = formatMs(pair.validToMs);
    log.info({ certificate: paths.certificate, valid_to }, 'certificate renewed');
  }

  function note(files: TlsFiles | null, reason: string): void {
    wrong = { files, reason, looks: wrong?.reason === reason ? wrong.looks + 1 : 1 };
    if (wrong.looks !== LOOKS_BEFORE_WARNING) return;
    set('certificate not usable', reason);
    log.warn({ reason }, 'the new certificate cannot be used: the previous one stays in use');
  }

  checkValidity();
  let looking = Promise.resolve();
  const lookInTurn = () => {
    looking = looking.then(look);
    return looking;
  };
  const timer = everyMs === null ? undefined : setInterval(lookInTurn, everyMs);
  return { look: lookInTurn, close: () => clearInterval(timer) };
}

function isSame(a: TlsFiles, b: TlsFiles): boolean {
  return a.certificate.equals(b.certificate) && a.key.equals(b.key);
}
