/** The cookie of a session. Browsers share cookies between ports, so its name has the port. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/** @returns the value; null without one */
export function readSessionCookie(request: IncomingMessage): string | null {
  const prefix = `${nameOf(request)}=`;
  const cookies = (request.headers.cookie ?? '').split(/; */);
  return cookies.find((one) => one.startsWith(prefix))?.slice(prefix.length) ?? null;
}

/** @returns a `Set-Cookie` header; 0 seconds delete it */
export function setSessionCookie(request: IncomingMessage, value: string, seconds: number): string {
  const secure = request.socket instanceof TLSSocket ? '; Secure' : '';
  return `${nameOf(request)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

function nameOf({ socket }: IncomingMessage): string {
  return `wirewatch_console_${socket.localPort}`;
}
