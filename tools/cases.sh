# Filters for the test cases that compute on the default platform. For ./dev and tools/gpu_kit.
programs='ops:*,programs*,jit*,pmap*,shard_map*,collectives*,random:*,scan:*,control flow:*,in place:*'
# Further cases that do not request CPU devices by name.
values='linalg*,jax ops*,optim*,elementwise*,complex*,fft*,layers*,indexing*,ordering*,statistics*,attention*,nn*,windows*,rearranging*'
values+=',distributions*,tpmap*,checkpoints*,data*,conv*,pooling*,losses*,grad*,jacobian*,custom derivatives*,numbers*,composed*'
values+=',samples*,sets*,shapes*,partial sums*,unreduced*,tree*,pullbacks*,embedding*,halves*,files*,debug*,transfer*,placement*,semantics*'
values+=',laziness*,keys*,edges*,products*,reproducible*,modes*'
# Of those, the cases that kill processes after a time, or continue in a fork. A GPU is slow to start, and cannot be forked.
killed='*killed while it saves*,*programs that save in one folder*,*ends a save*'
