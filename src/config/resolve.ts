/** Completes the settings, and checks those that depend on each other: folders, TLS pairs, ports. No I/O. */
import path from 'node:path';
import { folderAround, isBucket } from '../copy/place.ts';
import { misconfigured, type Refused } from '../refused.ts';
import { formatMs, parseInstant } from '../time.ts';
import { shapeProblem } from './export-settings.ts';
import { normalBaseUrl } from './format.ts';
import { isLoopback, trustedProxies } from './listening.ts';
import type { RawValue } from './raw-value.ts';
import type { Settings } from './schema.ts';

/**
 * The settings, with `ingest.drop`, `photos.folder` absolute, `copy.to` absolute where it is a folder, `log.file` absolute or empty,
 * `tls_certificate` and `tls_key` absolute or both empty, `server.base_url` normalized or empty, and
 * `server.trusted_proxies` the addresses and networks that are trusted in the end.
 */
export type ResolvedSettings = Settings & {
  /** `ingest.earliest_time`, as the API writes times; null: it depends on the file. */
  earliestTime: string | null;
};

type RawValues = ReadonlyMap<string, RawValue>;
type TlsFiles = Pick<Settings['server'], 'tls_certificate' | 'tls_key'>;

/**
 * @param raw the values that are not defaults, by setting, for their places and folders
 * @throws Refused `configuration`
 */
export function resolve(settings: Settings, raw: RawValues, dataFolder: string): ResolvedSettings {
  const { server, ingest, photos, copy, log, admin } = settings;
  const earliestMs = parseInstant(ingest.earliest_time);
  const pathOf = (setting: string, value: string, otherwise = ''): string =>
    value === '' ? otherwise : path.resolve(raw.get(setting)?.folder ?? '', value);
  const tlsOf = (section: 'server' | 'admin'): TlsFiles => {
    const { tls_certificate, tls_key } = settings[section];
    requireBoth(section, settings[section], raw);
    return {
      tls_certificate: pathOf(`${section}.tls_certificate`, tls_certificate),
      tls_key: pathOf(`${section}.tls_key`, tls_key),
    };
  };
  const shape = shapeProblem(settings.exports);
  if (shape !== null) throw refused(shape.setting, shape.problem, raw);
  const serverTls = tlsOf('server');
  const ownTls = tlsOf('admin');
  const drop = pathOf('ingest.drop', ingest.drop, path.join(dataFolder, 'drop'));
  const to = isBucket(copy.to) ? copy.to : pathOf('copy.to', copy.to);
  const data = path.resolve(dataFolder);
  if (drop === data)
    throw refused('ingest.drop', `${drop} is the data folder itself; choose a separate folder`, raw);
  const around = folderAround(to, { data, drop });
  if (around !== null)
    throw refused(
      'copy.to',
      `${to} is part of the ${around} folder; choose a folder elsewhere, preferably on another disk`,
      raw,
    );
  if (copy.wait && to === '')
    throw refused('copy.wait', 'to wait for the copy needs [copy] to: where that is', raw);
  if (copy.standby && to === '')
    throw refused('copy.standby', 'a standby needs [copy] to: the copy that it follows', raw);
  return {
    ...settings,
    server: {
      ...server,
      trusted_proxies: trustedProxies(server),
      base_url: server.base_url === '' ? '' : normalBaseUrl(server.base_url),
      ...serverTls,
    },
    admin: { ...admin, ...adminTls(admin, { own: ownTls, server: serverTls }, raw) },
    ingest: { ...ingest, drop },
    photos: { folder: pathOf('photos.folder', photos.folder, path.join(dataFolder, 'photos')) },
    copy: { ...copy, to, credentials: pathOf('copy.credentials', copy.credentials) },
    log: { ...log, file: pathOf('log.file', log.file) },
    earliestTime: earliestMs === null ? null : formatMs(earliestMs),
  };
}

/** A certificate is useless without its key, and the key without it; plain HTTP was not what the operator wanted. */
function requireBoth(
  section: 'server' | 'admin',
  { tls_certificate, tls_key }: TlsFiles,
  raw: RawValues,
): void {
  if ((tls_certificate === '') === (tls_key === '')) return;
  const [set, other] = tls_key === '' ? ['tls_certificate', 'tls_key'] : ['tls_key', 'tls_certificate'];
  throw refused(
    `${section}.${set}`,
    `TLS also needs [${section}] ${other}. Set both, or neither for plain HTTP`,
    raw,
  );
}

/** The TLS files of the administration port: its own, or beyond this machine those of the server. */
function adminTls(
  { host, port }: Settings['admin'],
  { own, server }: { own: TlsFiles; server: TlsFiles },
  raw: RawValues,
): TlsFiles {
  if (own.tls_certificate !== '' || port === 0 || isLoopback(host)) return own;
  if (server.tls_certificate !== '') return server;
  throw refused(
    'admin.host',
    `${host} can be reached from other machines, so the console there needs TLS. Set [admin] tls_certificate and tls_key (or those of [server]), or leave [admin] host at 127.0.0.1 and reach it through an SSH tunnel`,
    raw,
  );
}

function refused(setting: string, detail: string, raw: RawValues): Refused {
  return misconfigured(`${raw.get(setting)?.place ?? setting}: ${detail}`);
}
