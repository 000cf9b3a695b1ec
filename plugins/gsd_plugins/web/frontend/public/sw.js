// The service worker of the dashboard: it opens the question of a notification that was clicked, and does nothing else.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const open = event.notification.data;
  const show = async () => {
    const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    if (!page) return self.clients.openWindow(`./${open}`);
    page.postMessage({ open });
    return page.focus();
  };
  event.waitUntil(show());
});
