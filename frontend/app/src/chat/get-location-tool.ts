import type { SluiceChatOptions } from "sluicegate/react";

const TIMEOUT_MILLISECONDS = 20_000;

/** The position of the browser; rejects if it is not permitted or unknown. */
function position(isPrecise: boolean): Promise<GeolocationPosition> {
  return new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      resolve,
      () => reject(new Error("The browser did not provide its location.")),
      { enableHighAccuracy: isPrecise, timeout: TIMEOUT_MILLISECONDS },
    );
  });
}

/** The client-side tools of this page. */
export const CLIENT_TOOLS: NonNullable<SluiceChatOptions["clientTools"]> = {
  async get_location({ precise }: { readonly precise?: boolean }) {
    const { coords } = await position(precise === true);
    return {
      latitude: coords.latitude,
      longitude: coords.longitude,
      accuracyMetres: Math.round(coords.accuracy),
    };
  },
};
