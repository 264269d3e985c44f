-- For wrk: each client asks again after 5 ms, so that the server is not kept busy.
function delay()
  return 5
end
